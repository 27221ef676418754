import unittest

from durations import parse, write


class Durations(unittest.TestCase):
    def test_reading(self):
        self.assertEqual(parse("1h30m"), 5400)
        self.assertEqual(parse("45s"), 45)

    def test_nonsense_is_refused(self):
        with self.assertRaises(ValueError):
            parse("soon")

    def test_writing(self):
        self.assertEqual(write(5400), "1h30m")
        self.assertEqual(write(45), "45s")

    def test_no_time_at_all(self):
        self.assertEqual(write(0), "0s")


if __name__ == "__main__":
    unittest.main()

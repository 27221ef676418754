"""Whole commands that play with the shell itself, the terminal, or whoever drives it; each ends where it began.

They are not put into bigger ones: they change the shell, end it, read from the keyboard, or are cut short.
"""

from collections.abc import Callable

from tests.fuzz import screen_games, shadow_games, shell_games, waiting_games
from tests.fuzz.combine import any_piece
from tests.fuzz.pieces import Draw
from tests.fuzz.steps import Game, Step


def composed(draw: Draw) -> Game:
    """The grammar's own: pieces in pieces."""
    piece = any_piece(draw, draw.rng.choice([0, 1, 1, 2, 2, 3]))
    return Game("composed", (Step(text=piece.text, output=piece.output, code=piece.code),))


GAMES: list[tuple[int, Callable[[Draw], Game | None]]] = [
    (40, composed),
    (3, shell_games.last_code),
    (3, shell_games.variables),
    (3, shell_games.directory),
    (2, shell_games.moved),
    (1, shell_games.pushed),
    (1, shell_games.removed),
    (2, shell_games.leaves),
    (1, shell_games.killed_shell),
    (1, shell_games.error_exit),
    (1, shell_games.unset_variable),
    (2, shell_games.traced),
    (1, shell_games.pipe_failure),
    (2, shell_games.traps),
    (1, shell_games.own_signal),
    (3, shell_games.syntax_error),
    (1, shell_games.not_found),
    (2, waiting_games.asks_line),
    (2, waiting_games.asks_program),
    (1, waiting_games.reads_to_the_end),
    (1, waiting_games.typed_ahead),
    (1, waiting_games.nested_shell),
    (1, waiting_games.stopped),
    (2, waiting_games.followed),
    (1, waiting_games.resized),
    (2, waiting_games.interrupted),
    (1, waiting_games.ignores_interrupt),
    (1, waiting_games.timed_out),
    (3, waiting_games.cancelled),
    (2, waiting_games.daemons),
    (2, waiting_games.background_job),
    (1, screen_games.big_output),
    (1, screen_games.long_line),
    (1, screen_games.long_command),
    (2, screen_games.binary),
    (2, screen_games.half_sequence),
    (2, screen_games.screen_games),
    (3, screen_games.modes_left),
    (4, shadow_games.prompts),
    (6, shadow_games.shadowed),
]


def any_game(draw: Draw) -> Game:
    """A random game that this shell has words for."""
    while True:
        _, make = draw.rng.choices(GAMES, [weight for weight, _ in GAMES])[0]
        game = make(draw)
        if game is not None:
            return game

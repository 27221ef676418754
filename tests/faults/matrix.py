"""The fault matrix: what is broken on purpose, what must hold, and the tests that prove it.

`python -m tests.faults.matrix` prints the table for docs/faults.md; test_matrix.py checks that the page has it,
and that every test it names exists.
"""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "partly", "open", "not here"]


@dataclass(frozen=True, slots=True)
class Row:
    """A fault."""

    number: int
    fault: str
    expected: str
    verdict: Verdict
    tests: tuple[str, ...] = ()
    note: str = ""


ROWS = (
    Row(
        1,
        "`kill -9` of Tarmac while a command prints",
        "Resume knows all output that was shown, invents no exit code, and ends what was left running",
        "holds",
        (
            "test_what_a_person_saw_before_the_kill_is_known_to_the_resumed_task",
            "test_what_ignores_a_hang_up_does_not_outlive_a_killed_host",
            "test_what_a_dead_host_left_running_is_ended_and_named",
        ),
    ),
    Row(
        2,
        "`kill -9` of the process that holds the PTYs",
        "Its commands are reported as lost; other terminals go on",
        "holds",
        (
            "test_a_killed_daemon_takes_only_its_own_terminals_along",
            "test_with_the_daemon_its_shells_end_and_results_say_so",
        ),
    ),
    Row(
        3,
        "SIGTERM to Tarmac",
        "Commands end, the log is flushed, the exit status is 143",
        "holds",
        (
            "test_a_signal_ends_it_what_it_started_too_and_it_can_be_resumed",
            "test_a_signal_to_tarmac_ends_the_command_first",
        ),
    ),
    Row(
        4,
        "SIGHUP, or the terminal is closed",
        "A clean stop",
        "holds",
        ("test_a_signal_to_tarmac_ends_the_command_first",),
    ),
    Row(
        5,
        "`kill -9` at random moments of writing",
        "Every acknowledged fact is there, once and in order",
        "holds",
        (
            "test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged",
            "test_killed_at_random_moments_a_task_loses_nothing_and_resumes",
            "test_killed_before_the_words_were_recorded_a_resume_says_so",
        ),
    ),
    Row(
        6,
        "Power cut: log and index cut at random bytes",
        "They open with a prefix of what was written",
        "holds",
        (
            "test_a_log_that_a_power_cut_left_at_any_byte_opens_with_a_prefix_of_it",
            "test_an_index_that_a_power_cut_left_at_any_byte_is_made_anew",
        ),
    ),
    Row(
        7,
        "The state folder's disk is full",
        "The error is reported; terminals go on; so does the task once there is room",
        "holds",
        (
            "test_a_full_disk_is_told_and_the_task_goes_on_when_there_is_room",
            "test_a_full_disk_is_an_error_that_says_so_and_it_goes_on_when_there_is_room",
            "test_a_full_disk_costs_only_the_bytes_it_did_not_take",
        ),
    ),
    Row(
        8,
        "No space while a file is written",
        "The old content stays; the error names the file",
        "holds",
        (
            "test_a_full_disk_leaves_the_old_content_and_nothing_else",
            "test_a_full_workspace_fails_the_tool_and_keeps_the_file",
        ),
    ),
    Row(
        9,
        "The workspace's disk is full",
        "A tool error; no storm of retries",
        "holds",
        ("test_a_full_workspace_fails_the_tool_and_keeps_the_file",),
    ),
    Row(
        10,
        "The state folder becomes read-only",
        "As row 7; lists still work",
        "holds",
        (
            "test_a_state_folder_that_became_read_only_is_told",
            "test_a_state_folder_that_becomes_read_only_under_a_task_is_told",
        ),
    ),
    Row(
        11,
        "EIO when a log is read",
        "That task is listed with the reason; the others load",
        "holds",
        (
            "test_a_log_that_the_disk_can_not_read_is_told_and_the_others_are_listed",
            "test_a_task_whose_log_can_not_be_read_is_listed_with_the_reason",
        ),
    ),
    Row(
        12,
        "File descriptors used up",
        "A typed error; terminals that are open go on",
        "holds",
        (
            "test_descriptors_used_up_are_a_clear_error_and_none_is_lost",
            "test_a_low_limit_on_descriptors_is_enough_to_work",
        ),
    ),
    Row(
        13,
        "PTYs used up",
        "A typed error; it works again once one is closed",
        "holds",
        ("test_ptys_used_up_are_a_clear_error",),
    ),
    Row(
        14,
        "Processes used up: pids.max 1, 2, 3, 4",
        "No hang and no traceback in any front end; what can't be done is reported once",
        "holds",
        (
            "test_with_few_processes_every_verb_comes_to_an_end",
            "test_with_few_processes_a_server_answers_and_ends_at_a_signal",
            "test_a_run_that_can_judge_nothing_says_so_once",
        ),
    ),
    Row(
        15,
        "Memory used up",
        "The command is killed and named as out of memory; Tarmac is unharmed",
        "holds",
        (
            "test_an_out_of_memory_kill_is_named",
            "test_with_little_memory_every_verb_comes_to_an_end",
            "test_memory_has_a_limit",
        ),
    ),
    Row(
        16,
        "A fork bomb in a terminal",
        "The tree is ended",
        "holds",
        (
            "test_a_process_that_keeps_forking_is_ended_with_all_its_children",
            "test_a_process_that_runs_away_by_forking_is_caught",
        ),
    ),
    Row(
        17,
        "A daemon (two forks and setsid), then a timeout",
        "It is ended with the command",
        "holds",
        ("test_kill_ends_everything_the_command_started_and_nothing_else",),
    ),
    Row(
        18,
        "A command that ignores INT, TERM and HUP",
        "SIGKILL on schedule, and the result says so",
        "holds",
        (
            "test_a_command_that_ignores_ctrl_c_is_terminated_then_killed",
            "test_a_timeout_kills_what_ignores_everything",
            "test_ctrl_c_is_waited_for_where_there_is_no_processor",
        ),
    ),
    Row(
        19,
        "A command that stops itself",
        "Timeouts still work",
        "holds",
        ("test_a_stopped_process_is_ended_within_its_grace", "test_a_stopped_command_is_told_and_can_go_on"),
    ),
    Row(
        20,
        "The shell exits or is killed",
        "Reported at once; the next command has a fresh shell",
        "holds",
        (
            "test_a_terminal_whose_shell_is_killed_leaves_by_itself",
            "test_a_shell_that_ignores_everything_itself_is_killed_and_replaced",
        ),
    ),
    Row(
        21,
        "A background job keeps the terminal open",
        "The command still ends",
        "holds",
        ("test_a_background_job_holds_up_nobody_and_ends_with_the_terminal",),
    ),
    Row(
        22,
        "Ten thousand short commands",
        "No zombies; descriptors and memory stay flat",
        "holds",
        (
            "test_ten_thousand_commands_leave_nothing_behind",
            "test_a_thousand_commands_leave_nothing_behind",
            "test_memory_does_not_grow_with_the_commands_of_a_terminal",
        ),
    ),
    Row(
        23,
        "A flood of output, a viewer that stalls",
        "Memory is bounded; Ctrl-C works",
        "holds",
        (
            "test_a_flood_of_output_neither_fills_memory_nor_stops_the_loop",
            "test_an_editor_that_reads_slowly_misses_output_and_nothing_else",
        ),
    ),
    Row(
        24,
        "A line of megabytes, binary noise",
        "Bounded, linear, valid text",
        "holds",
        ("test_a_line_of_5_mb_is_bounded_and_not_slow", "test_binary_output_is_said_to_be_so_and_kept_whole"),
    ),
    Row(
        25,
        "UTF-8 and marks split at every byte",
        "The same text",
        "holds",
        ("test_marks_survive_any_chunking", "test_a_character_split_between_writes_is_whole"),
    ),
    Row(
        26,
        "The clock jumps by an hour",
        "Timeouts go by the monotonic clock; order by sequence numbers",
        "holds",
        (
            "test_a_clock_that_jumps_changes_no_limit_and_no_order",
            "test_only_the_monotonic_clock_measures_waits",
        ),
        "Only the clock of one Python program jumps, because a test must not set the clock of a shared machine.",
    ),
    Row(
        27,
        "Suspended, or frozen past a timeout",
        "Output that came meanwhile is read before a timeout ends the command; the time counts towards no limit",
        "holds",
        (
            "test_a_host_that_was_frozen_past_the_timeout_reads_before_it_gives_up",
            "test_what_is_frozen_is_not_given_up_for_that",
        ),
    ),
    Row(
        28,
        "A browser loses its connection",
        "It goes on from its offset",
        "holds",
        (
            "test_a_socket_cut_again_and_again_loses_no_byte",
            "test_cut_anywhere_the_pieces_make_the_tape",
            "test_a_killed_server_is_said_and_comes_back",
        ),
    ),
    Row(
        29,
        "Two viewers resize",
        "The command sees the last size",
        "holds",
        (
            "test_the_size_follows_the_holder_and_others_fit_it_in",
            "test_a_resize_during_output_loses_nothing",
        ),
    ),
    Row(
        30,
        "Two programs on one task",
        "The second is refused, with the process id of the first; the lock of a dead process is taken over",
        "holds",
        (
            "test_a_second_writer_is_refused_and_told_who_is_the_first",
            "test_a_log_whose_writer_was_killed_can_be_opened_though_its_last_child_still_has_it",
        ),
    ),
    Row(
        31,
        "A log of a newer version, a damaged record, an empty file",
        "Refused or reported; the others load; nothing is deleted",
        "holds",
        (
            "test_a_log_of_a_newer_format_is_not_opened_and_left_as_it_is",
            "test_a_damaged_record_in_the_middle_is_told_and_the_task_goes_on",
            "test_a_log_without_even_a_whole_header_begins_anew",
        ),
    ),
    Row(
        32,
        "A port that is taken",
        "A clear error; no other address is tried",
        "holds",
        ("test_a_port_that_is_taken_is_said",),
    ),
    Row(
        33,
        "A question is open when the program ends",
        "It is asked again, and never counts as a yes",
        "holds",
        ("test_a_question_that_was_open_when_the_process_left_is_asked_again",),
    ),
    Row(
        34,
        "A directory, the workspace or the state folder is removed or moved",
        "Commands and file tools fail with the reason; nothing is created again, "
        "and nothing is acknowledged that went to a deleted file",
        "holds",
        (
            "test_a_deleted_directory_is_left_with_a_notice",
            "test_a_workspace_that_is_gone_is_not_made_anew",
            "test_nothing_is_acknowledged_after_the_state_is_gone",
            "test_nothing_is_acknowledged_into_a_file_that_is_not_the_log",
        ),
    ),
    Row(
        35,
        "A peer dies, sends a line without an end, half a message, a flood, or nothing; a model's server too",
        "The call fails with a typed error; there are limits; others go on",
        "holds",
        (
            "test_a_peer_that_dies_fails_those_who_wait_and_ends_what_it_asked_for",
            "test_no_garbage_ends_the_connection",
            "test_a_flood_of_requests_has_a_bound_and_one_id_runs_once",
            "test_a_line_without_an_end_is_given_up",
            "test_what_unpacks_to_a_gigabyte_is_given_up",
            "test_an_agent_that_says_nothing_is_given_up",
        ),
    ),
    Row(
        36,
        "A policy file is damaged or can't be read",
        "It is ignored and kept aside, and the reason is shown",
        "holds",
        ("test_a_damaged_file_counts_for_nothing_says_so_and_is_kept_aside",),
    ),
    Row(
        37,
        "The parser crashes, hangs or can't start; hostile lines",
        "The policy asks, within its time limit",
        "holds",
        ("test_a_parser_that_misbehaves_makes_it_ask", "test_whatever_a_line_repeats_it_is_judged_in_time"),
    ),
    Row(
        38,
        "No sandbox on this machine",
        "Commands for the sandbox do not run",
        "holds",
        ("test_without_a_sandbox_nothing_is_run", "test_a_sandbox_that_breaks_later_runs_nothing"),
    ),
    Row(
        39, "System calls fail with EINTR", "Nothing is lost", "holds", ("test_interrupted_system_calls_lose_nothing",)
    ),
    Row(40, "A thousand SIGCHLD and SIGWINCH", "No exit is lost", "holds", ("test_a_storm_of_signals_loses_no_exit",)),
)

WORDS = {"holds": "holds", "partly": "**partly**", "open": "**open**", "not here": "not tested"}


def table() -> str:
    """The rows in Markdown."""
    lines = ["| # | Fault | What must hold | Verdict | Tests |", "|---|---|---|---|---|"]
    for row in ROWS:
        tests = "<br>".join(f"`{each}`" for each in row.tests)
        proof = "<br>".join(each for each in (tests, row.note) if each)
        lines.append(f"| {row.number} | {row.fault} | {row.expected} | {WORDS[row.verdict]} | {proof} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

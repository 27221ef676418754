"""The ladder as a pure function: every rung, every way off it, and properties over any set of terminals."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from tarmac.events import TaskId
from tarmac.terminals.pool.reuse import Candidate, LeaseRequest, Obstacle, ReuseChoice, Rung, choose, explain, obstacle
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects.bash import Bash

patient = profile(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
A, B = TaskId("A"), TaskId("B")
PROJECT = Path("/project")
REQUEST = LeaseRequest(cwd=PROJECT, task=A)
SETTINGS = Settings()


def terminal(number: int = 1, **known: object) -> Candidate:
    facts = {"id": f"t{number}", "number": number, "cwd": PROJECT, **known}
    return Candidate(**facts)  # type: ignore[arg-type]


def rung(
    *candidates: Candidate, request: LeaseRequest = REQUEST, settings: Settings = SETTINGS
) -> tuple[str, Rung] | None:
    choice = choose(candidates, request, settings)
    return (choice.candidate.id, choice.rung) if choice else None


def test_the_five_rungs_in_their_order() -> None:
    """T3: taking away the best each time shows the next."""
    ladder = [
        terminal(5, task=A),
        terminal(4, task=A, cwd=PROJECT / "src"),
        terminal(3),
        terminal(2, cwd=PROJECT / "src"),
        terminal(1, task=B),
    ]
    found = []
    while (choice := choose(ladder, REQUEST, SETTINGS)) is not None:
        found.append((choice.candidate.number, choice.rung))
        ladder.remove(choice.candidate)
    assert found == [(5, Rung.OWN_HERE), (4, Rung.OWN_NEAR), (3, Rung.FREE_HERE), (2, Rung.FREE_NEAR)]
    assert [each.task for each in ladder] == [B]


def test_without_a_task_only_those_of_nobody() -> None:
    """T3: rungs 1 and 2 are skipped."""
    request = replace(REQUEST, task=None)
    assert rung(terminal(1, task=A), terminal(2, cwd=PROJECT / "src"), request=request) == ("t2", Rung.FREE_NEAR)
    assert rung(terminal(1, task=A), request=request) is None


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"obstacle": Obstacle.BUSY, "command": "make"}, "t1 is busy with `make`"),
        ({"task": B}, "t1 is another task's"),
        ({"provider": "exec"}, "t1 uses the provider exec"),
        ({"shell": "/bin/zsh"}, "t1 runs /bin/zsh"),
        ({"cwd": None, "task": A}, "t1 is in an unknown directory"),
        ({"cwd": Path("/other")}, "t1 is in /other"),
        ({"cwd": Path("/project2")}, "t1 is in /project2"),
        ({"cwd": PROJECT / "src", "moves": 5, "task": A}, "t1 was moved 5 of 5 times"),
        ({"users": {B}, "jobs": True}, "t1 has a job running, which a fresh shell would end"),
    ],
)
def test_what_keeps_a_terminal_off_the_ladder_is_said(facts: dict[str, object], why: str) -> None:
    """T3, T4: each reason by itself; a terminal whose directory is unknown matches nothing."""
    request = replace(REQUEST, shell=Bash("/bin/bash"))
    one = terminal(1, **{"shell": "/bin/bash", **facts})
    found = obstacle(one, request, SETTINGS)
    assert found is not None
    assert (choose([one], request, SETTINGS), explain(one, found, SETTINGS)) == (None, why)


def test_a_terminal_is_switched_to_parents_and_children_at_any_depth() -> None:
    """T4."""
    deep = PROJECT / "a" / "b" / "c"
    for here, there in ((deep, PROJECT), (PROJECT, deep), (Path("/"), deep), (deep, Path("/"))):
        assert rung(terminal(task=A, cwd=here), request=replace(REQUEST, cwd=there)) == ("t1", Rung.OWN_NEAR)


def test_a_terminal_is_switched_fewer_than_so_many_times() -> None:
    """T4: `max_directory_changes`; being there already needs no switch."""
    away = terminal(task=A, cwd=PROJECT / "src", moves=4)
    assert rung(away) == ("t1", Rung.OWN_NEAR)
    assert rung(replace(away, moves=5)) is None
    assert rung(replace(away, moves=0), settings=Settings(max_directory_changes=0)) is None
    assert rung(replace(away, moves=99, cwd=PROJECT)) == ("t1", Rung.OWN_HERE)


def test_unrelated_directories_only_if_that_is_allowed() -> None:
    """T4: `reuse_related_only`."""
    away = terminal(task=A, cwd=Path("/elsewhere"))
    assert rung(away) is None
    assert rung(away, settings=Settings(reuse_related_only=False)) == ("t1", Rung.OWN_NEAR)
    assert rung(replace(away, cwd=None), settings=Settings(reuse_related_only=False)) is None


def test_an_exec_terminal_never_switches() -> None:
    """T1: its directory stays the initial one."""
    request = replace(REQUEST, provider="exec")
    assert rung(terminal(task=A, provider="exec"), request=request) == ("t1", Rung.OWN_HERE)
    away = terminal(task=A, provider="exec", cwd=PROJECT / "src")
    assert (rung(away, request=request), obstacle(away, request, SETTINGS)) == (None, Obstacle.CANNOT_MOVE)


def test_who_used_it_decides_on_a_reset() -> None:
    """T8: another task did, or somebody without a task; never in `exec`, where nothing lasts."""
    assert not terminal().needs_reset(REQUEST)
    assert not terminal(users={A}).needs_reset(REQUEST)
    assert terminal(users={B}).needs_reset(REQUEST)
    assert terminal(users={A, B}).needs_reset(REQUEST)
    assert terminal(users={None}).needs_reset(REQUEST)
    assert not terminal(users={None}).needs_reset(replace(REQUEST, task=None))
    assert not terminal(users={B}, provider="exec").needs_reset(REQUEST)


def test_of_two_on_a_rung_one_that_needs_no_reset_then_the_older() -> None:
    """T3, T8."""
    assert rung(terminal(1, users={B}), terminal(2, users={A})) == ("t2", Rung.FREE_HERE)
    assert rung(terminal(2), terminal(1)) == ("t1", Rung.FREE_HERE)


def test_a_job_in_the_background_is_no_hindrance_to_its_own_task() -> None:
    """T3, T12: `kill %1` has to find it."""
    assert rung(terminal(task=A, users={A}, jobs=True)) == ("t1", Rung.OWN_HERE)


def test_symlinks_lead_to_the_same_place(tmp_path: Path) -> None:
    """T5: the real directory and a link to it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    request = replace(REQUEST, cwd=tmp_path / "link")
    assert rung(terminal(task=A, cwd=tmp_path / "real"), request=request) == ("t1", Rung.OWN_HERE)


names = st.sampled_from(["a", "b", "ab"])
directories = st.lists(names, max_size=3).map(lambda parts: Path("/", *parts))
tasks = st.sampled_from([None, A, B])
candidates = st.lists(
    st.builds(
        Candidate,
        id=st.just("t"),
        number=st.integers(1, 1000),
        provider=st.sampled_from(["pty", "exec"]),
        task=tasks,
        cwd=st.none() | directories,
        moves=st.integers(0, 6),
        obstacle=st.sampled_from([None, None, Obstacle.BUSY]),
        users=st.frozensets(tasks),
        jobs=st.booleans(),
    ),
    max_size=8,
)
requests = st.builds(LeaseRequest, cwd=directories, task=tasks, provider=st.sampled_from(["pty", "exec"]))
settings = st.builds(Settings, reuse_related_only=st.booleans(), max_directory_changes=st.integers(0, 6))


@patient
@given(candidates, requests, settings)
def test_nothing_foreign_busy_or_unfit_is_ever_chosen(
    found: list[Candidate], request: LeaseRequest, settings: Settings
) -> None:
    """T3, T4: whatever there is."""
    choice = choose(found, request, settings)
    if choice is None:
        assert all(obstacle(each, request, settings) for each in found)
        return
    one = choice.candidate
    assert (one.obstacle, one.provider, obstacle(one, request, settings)) == (None, request.provider, None)
    assert one.task in (request.task, None) and one.cwd is not None
    assert choice.switch == (one.cwd != request.cwd)
    if choice.switch:
        related = one.cwd in request.cwd.parents or request.cwd in one.cwd.parents
        assert (
            one.provider == "pty"
            and one.moves < settings.max_directory_changes
            and (related or not settings.reuse_related_only)
        )
    if one.users - {request.task} and one.provider == "pty":
        assert choice.reset and not one.jobs


@patient
@given(candidates, requests, settings)
def test_no_other_terminal_stands_on_a_better_rung(
    found: list[Candidate], request: LeaseRequest, settings: Settings
) -> None:
    """T3: each alone is on the rung it is on among others."""
    choice = choose(found, request, settings)
    alone = [each for one in found if (each := choose([one], request, settings)) is not None]
    assert (choice is None) == (not alone)
    if choice is not None:
        assert choice.rung == min(each.rung for each in alone)
        assert choice in alone


@patient
@given(candidates, requests, settings, st.randoms())
def test_the_order_in_which_terminals_are_listed_does_not_matter(
    found: list[Candidate], request: LeaseRequest, settings: Settings, random: object
) -> None:
    """T3."""
    unique = list({each.number: each for each in found}.values())
    shuffled = unique[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert choose(shuffled, request, settings) == choose(unique, request, settings)


@patient
@given(candidates, requests)
def test_a_new_terminal_would_be_chosen_for_the_same_wish(found: list[Candidate], request: LeaseRequest) -> None:
    """T3: what is opened and bound for a wish stands on its first rung afterwards."""
    new = Candidate(id="new", number=2000, provider=request.provider, task=request.task, cwd=request.cwd)
    choice = choose([*found, new], request, SETTINGS)
    assert isinstance(choice, ReuseChoice)
    assert choice.rung == (Rung.OWN_HERE if request.task else Rung.FREE_HERE)

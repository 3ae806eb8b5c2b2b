"""Who may look at the page."""

import asyncio
from pathlib import Path

import pytest

from balanced_source_operator.kube.reviews import User
from balanced_source_operator.page.access import (
    ACCEPTED_FOR,
    REFUSED_FOR,
    Access,
    AccessError,
    ConfiguredToken,
    ReviewedToken,
)
from support.page_scene import Reviewer

pytestmark = pytest.mark.asyncio
TOKEN = "0123456789abcdef0123"  # noqa: S105 - of this test


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def refusal(access: Access, token: str) -> tuple[int, str]:
    with pytest.raises(AccessError) as caught:
        await access.admit(token)
    return caught.value.status, str(caught.value)


async def test_the_configured_token_opens_the_page_for_all_sources(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    guest = await ConfiguredToken(file).admit(TOKEN)

    assert await guest.may_see("any")


@pytest.mark.parametrize(
    ("token", "said"), [("", "needs a token"), (TOKEN[:-1], "is wrong"), ("é\ud800", "is wrong")]
)
async def test_a_wrong_token_is_refused_with_a_sentence(
    tmp_path: Path, token: str, said: str
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    status, sentence = await refusal(ConfiguredToken(file), token)

    assert (status, said in sentence, TOKEN in sentence) == (401, True, False)


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), ("", "fewer than 16"), ("short", "fewer than")]
)
async def test_without_a_valid_token_file_every_request_is_denied(
    tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    for token in ("", content or "x"):
        status, sentence = await refusal(ConfiguredToken(file), token)
        assert (status, said in sentence) == (503, True)


async def test_a_rotated_token_takes_effect_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    access = ConfiguredToken(file)
    await access.admit(TOKEN)
    file.write_text(TOKEN[::-1])

    assert (await refusal(access, TOKEN))[0] == 401
    await access.admit(TOKEN[::-1])


async def test_a_user_of_the_cluster_sees_the_namespaces_that_its_rights_name() -> None:
    access = ReviewedToken(Reviewer())
    ann, eve = await access.admit("of-ann"), await access.admit("of-eve")

    assert [await ann.may_see(namespace) for namespace in ("shop", "bank")] == [True, True]
    assert [await eve.may_see(namespace) for namespace in ("shop", "bank")] == [True, False]
    assert eve.refusal("bank").startswith(
        "eve may not get BalancedSources in namespace bank: ask for"
    )


@pytest.mark.parametrize("token", ["", "of-nobody", "x" * 20_000])
async def test_a_token_that_the_api_server_does_not_accept_is_refused(token: str) -> None:
    reviewer = Reviewer()
    status, sentence = await refusal(ReviewedToken(reviewer), token)

    assert (status, "kubectl create token" in sentence) == (401, True)
    assert len(reviewer.asked) == (1 if "nobody" in token else 0), (
        "neither no token nor a huge one is sent on"
    )


async def test_the_api_server_is_polled_at_intervals() -> None:
    reviewer, clock = Reviewer(), Clock()
    access = ReviewedToken(reviewer, clock)
    for _ in range(3):
        eve = await access.admit("of-eve")
        await eve.may_see("shop")
    assert reviewer.asked == [("of-eve",), ("eve", ""), ("eve", "shop")]

    del reviewer.users["of-eve"]
    clock.now = ACCEPTED_FOR
    assert (await refusal(access, "of-eve"))[0] == 401
    reviewer.users["of-eve"] = User(name="eve")
    assert (await refusal(access, "of-eve"))[0] == 401, "a refusal is remembered, too"
    clock.now += REFUSED_FOR
    await access.admit("of-eve")


async def test_the_cache_of_reviews_is_bounded() -> None:
    access = ReviewedToken(Reviewer())
    for number in range(1100):
        await refusal(access, str(number))

    assert len(access._users._answers) == 1000


async def test_many_guests_ask_few_questions_at_once() -> None:
    reviewer, gate = Reviewer(), asyncio.Event()
    reviewer.users.update({str(number): User(name="x") for number in range(40)})
    most = 0

    async def slow(token: str) -> User | None:
        nonlocal most
        reviewer.asked.append((token,))
        most = max(most, len(reviewer.asked))
        await gate.wait()
        reviewer.asked.pop()
        return User(name="x")

    reviewer.user_of = slow  # type: ignore[method-assign]
    access = ReviewedToken(reviewer)
    tasks = [asyncio.create_task(access.admit(str(number))) for number in range(40)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)

    assert most <= 8


async def test_an_api_server_that_does_not_answer_is_named() -> None:
    reviewer = Reviewer()
    reviewer.is_down = True
    status, sentence = await refusal(ReviewedToken(reviewer), "of-ann")

    assert (status, "the API server does not answer" in sentence) == (503, True)
    reviewer.is_down = False
    await ReviewedToken(reviewer).admit("of-ann")

from __future__ import annotations

import ntpath
import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.stores.files.folder import EVERYONE, MAX_NAME, decode, encode, is_hashed, plain
from echoic.testing.store_histories import ODD_NAMES

NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=256
) | st.sampled_from(ODD_NAMES)
LIKELY = st.text(st.sampled_from("aA%=.2E/\\é jsonCON-~"), min_size=1, max_size=12)
ENDINGS = (".json", ".md", ".vectors", ".lock")


@given(name=NAMES | LIKELY, folder=st.booleans(), folds_case=st.booleans())
def test_a_name_comes_back_from_its_file_unless_it_was_too_long(
    name: str, folder: bool, folds_case: bool
) -> None:
    stem = encode(name, folder=folder, folds_case=folds_case)
    found = decode(stem, folder=folder, folds_case=folds_case)
    assert found == (None if is_hashed(stem) else name)


@given(first=NAMES | LIKELY, second=NAMES | LIKELY)
def test_two_names_never_share_a_file_however_the_system_compares_them(first: str, second: str) -> None:
    if first != second:
        stems = [encode(name, folds_case=True) for name in (first, second)]
        assert (
            unicodedata.normalize("NFC", stems[0]).casefold()
            != unicodedata.normalize("NFC", stems[1]).casefold()
        )
        assert encode(first) != encode(second)


def _is_reserved(name: str) -> bool:
    """Whether Windows takes `name` for something else than a file."""
    newer = getattr(ntpath, "isreserved", None)  # from Python 3.13 on, where pathlib's is on its way out
    return newer(name) if newer else PureWindowsPath(name).is_reserved()


@given(name=NAMES | LIKELY, folder=st.booleans(), folds_case=st.booleans())
def test_a_file_never_leaves_its_folder_nor_takes_a_reserved_name(
    name: str, folder: bool, folds_case: bool
) -> None:
    stem = encode(name, folder=folder, folds_case=folds_case)
    for ending in ("", *ENDINGS):
        assert PurePosixPath(f"/place/{stem}{ending}").parent == PurePosixPath("/place")
        assert PureWindowsPath(f"c:/place/{stem}{ending}").parent == PureWindowsPath("c:/place")
        assert not _is_reserved(f"{stem}{ending}")
    assert stem.isascii()
    assert stem.isprintable()
    assert not stem.startswith((".", " "))
    assert not stem.endswith((".", " "))
    assert stem != EVERYONE
    assert len(stem) <= MAX_NAME
    assert not (set(stem) & set('<>:"/\\|?*'))
    assert not (folds_case and set(stem.replace("%", "")) & set("GHIJKLMNOPQRSTUVWXYZ"))


@given(name=LIKELY)
def test_a_folder_is_never_taken_for_a_users_file(name: str) -> None:
    assert not encode(name, folder=True).lower().endswith(ENDINGS)


@pytest.mark.parametrize(
    "name", ["ana", "Ana.Smith", "ana@example.com", "+351-91_2", "42", "a" * 150, "x.json"]
)
def test_a_safe_name_is_its_own_file(name: str) -> None:
    assert encode(name) == name == decode(name)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("..", "%2E%2E"),
        ("../x", "%2E.%2Fx"),
        (".hidden", "%2Ehidden"),
        ("ana.", "ana%2E"),
        ("a b", "a%20b"),
        ("a%2Fb", "a%252Fb"),
        ("CON", "%43ON"),
        ("nul.txt", "%6Eul.txt"),
        ("é", "%C3%A9"),
        ("e\u0301", "e%CC%81"),
        ("%everyone", "%25everyone"),
    ],
)
def test_an_odd_name_is_percent_encoded(name: str, stem: str) -> None:
    assert (encode(name), decode(stem)) == (stem, name)


@pytest.mark.parametrize(
    "stem", ["%2e", "%", "%zz", "a%", "é", "a b", "%41na", "CON", ".x", "%FF", EVERYONE, "x."]
)
def test_a_name_that_nobody_would_be_given_is_nobodys(stem: str) -> None:
    assert decode(stem) is None


@given(name=NAMES | LIKELY)
def test_the_name_another_program_would_give_is_nobody_elses(name: str) -> None:
    theirs = plain(name)
    if theirs is not None:
        assert theirs == name
        assert decode(theirs) in {None, name}
        assert PurePosixPath(f"/place/{theirs}.json").parent == PurePosixPath("/place")
        assert theirs != EVERYONE
        assert not is_hashed(theirs)


def test_the_name_another_program_would_give_is_known() -> None:
    assert [plain(name) for name in ("María", "user:1", "a%41b")] == ["María", "user:1", "a%41b"]
    assert [plain(name) for name in ("../x", ".x", "%everyone", "a%20b", "a/b", "é" * 200)] == [None] * 6

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from lineage_service.store.errors import StoreConflictError, StoreUnavailableError, translated_errors

REASONS = (
    "Operation not supported\n"
    "          \x1b[31m\u21b3\x1b[0m no credentials:\n"
    "           \x1b[31m\u21b3\x1b[0m forbidden\n"
)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DeltaError, StoreUnavailableError),
        (OSError, StoreUnavailableError),
        (CommitFailedError, StoreConflictError),
    ],
)
def test_reasons_that_the_library_tells_one_below_the_other_are_told_in_one_line(
    error: type[Exception], told: type[Exception]
) -> None:
    with pytest.raises(told, match="s3://bucket/flows") as found, translated_errors("s3://bucket/flows"):
        raise error(REASONS)
    assert "Operation not supported: no credentials: forbidden" in str(found.value)
    assert "\n" not in str(found.value)
    assert "\x1b" not in str(found.value)

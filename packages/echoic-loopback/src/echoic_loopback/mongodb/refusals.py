"""How a MongoDB server refuses: a code, its name, a sentence and perhaps labels. No logic.

Codes and names are those of the server's error list; `Location` and the number where a code has no name.
"""

from __future__ import annotations

from collections.abc import Sequence

TRANSIENT = "TransientTransactionError"
RETRYABLE = "RetryableWriteError"

BAD_VALUE = 2
NO_SUCH_KEY = 4
FAILED_TO_PARSE = 9
TYPE_MISMATCH = 14
ILLEGAL_OPERATION = 20
NAMESPACE_NOT_FOUND = 26
CONFLICTING_UPDATE = 40
CURSOR_NOT_FOUND = 43
NO_COMMAND = 59
IMMUTABLE_FIELD = 66
CANNOT_CREATE_INDEX = 67
INVALID_OPTIONS = 72
INVALID_NAMESPACE = 73
INDEX_OPTIONS_CONFLICT = 85
WRITE_CONFLICT = 112
NOT_SUPPORTED = 115
INVALID_PIPELINE_OPERATOR = 168
TRANSACTION_TOO_OLD = 225
NOT_IMPLEMENTED = 238
NO_SUCH_TRANSACTION = 251
TRANSACTION_COMMITTED = 256
NOT_SUPPORTED_IN_TRANSACTION = 263
HISTORY_LOST = 286
API_STRICT = 323
TOO_LARGE = 10334
DUPLICATE_KEY = 11000
SEARCH_NOT_ENABLED = 31082
UNKNOWN_STAGE = 40324
STAGE_OF_ONE_FIELD = 40323
MISSING_FIELD = 40414
UNKNOWN_FIELD = 40415
NO_REPLICA_SET = 40573
NOT_FIRST = 40602

NAMES = {
    BAD_VALUE: "BadValue",
    NO_SUCH_KEY: "NoSuchKey",
    FAILED_TO_PARSE: "FailedToParse",
    TYPE_MISMATCH: "TypeMismatch",
    ILLEGAL_OPERATION: "IllegalOperation",
    NAMESPACE_NOT_FOUND: "NamespaceNotFound",
    27: "IndexNotFound",
    CONFLICTING_UPDATE: "ConflictingUpdateOperators",
    CURSOR_NOT_FOUND: "CursorNotFound",
    52: "DollarPrefixedFieldName",
    NO_COMMAND: "CommandNotFound",
    IMMUTABLE_FIELD: "ImmutableField",
    CANNOT_CREATE_INDEX: "CannotCreateIndex",
    68: "IndexAlreadyExists",
    INVALID_OPTIONS: "InvalidOptions",
    INVALID_NAMESPACE: "InvalidNamespace",
    INDEX_OPTIONS_CONFLICT: "IndexOptionsConflict",
    86: "IndexKeySpecsConflict",
    91: "ShutdownInProgress",
    WRITE_CONFLICT: "WriteConflict",
    NOT_SUPPORTED: "CommandNotSupported",
    INVALID_PIPELINE_OPERATOR: "InvalidPipelineOperator",
    TRANSACTION_TOO_OLD: "TransactionTooOld",
    NOT_IMPLEMENTED: "NotImplemented",
    NO_SUCH_TRANSACTION: "NoSuchTransaction",
    TRANSACTION_COMMITTED: "TransactionCommitted",
    NOT_SUPPORTED_IN_TRANSACTION: "OperationNotSupportedInTransaction",
    HISTORY_LOST: "ChangeStreamHistoryLost",
    API_STRICT: "APIStrictError",
    TOO_LARGE: "BSONObjectTooLarge",
    DUPLICATE_KEY: "DuplicateKey",
    SEARCH_NOT_ENABLED: "SearchNotEnabled",
    13: "Unauthorized",
    14031: "OutOfDiskSpace",
    10107: "NotWritablePrimary",
    11600: "InterruptedAtShutdown",
}


class Refusal(Exception):
    """A command that failed, as its client is told."""

    def __init__(self, code: int, message: str, *, labels: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.labels = list(labels)

    def reply(self) -> dict[str, object]:
        """The answer on the wire."""
        answer: dict[str, object] = {
            "ok": 0.0,
            "errmsg": self.message,
            "code": self.code,
            "codeName": name_of(self.code),
        }
        return {**answer, "errorLabels": self.labels} if self.labels else answer


def name_of(code: int) -> str:
    """The server's name of an error code."""
    return NAMES.get(code, f"Location{code}")


def unknown_fields(given: Sequence[str], known: frozenset[str] | set[str], where: str) -> None:
    """Refuse the first field that `where` does not have.

    Raises:
        Refusal: there is one.
    """
    for name in given:
        if name not in known:
            raise Refusal(UNKNOWN_FIELD, f"BSON field '{where}.{name}' is an unknown field.")

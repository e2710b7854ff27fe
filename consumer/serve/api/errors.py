"""Errors as the API tells them: a code from the class, fact, where, what to do."""

from pathlib import Path

from consumer.runtime.advice import with_config
from consumer.serve.api.models import FailureDetail, Fault
from consumer.serve.observed.history import now
from ordering.errors import LeadershipLostError, ReconcilerError, SourceError, TargetError

_PREFIX = "Reconciler:Err"


def code_of(error: BaseException) -> str:
    """`Reconciler:ErrInput` for an InputError; `Reconciler:ErrInternal` for what was not foreseen."""
    name = type(error).__name__.removesuffix("Error") if isinstance(error, ReconcilerError) else "Internal"
    return _PREFIX + name


def fault_of(error: BaseException, config: Path, at: float | None = None, retry_in_s: float | None = None) -> Fault:
    """Why the changefeed of this file does not go on."""
    fact, where, hint = parts_of(error)
    return Fault(
        code=code_of(error),
        message=fact,
        where=where,
        hint=with_config(hint, config),
        exit_code=error.exit_code if isinstance(error, ReconcilerError) else 1,
        at=now() if at is None else at,
        retry_in_seconds=retry_in_s,
    )


def parts_of(error: BaseException) -> tuple[str, str, str]:
    """Fact, where, what to do. Of a bug only its kind is told: its text may hold anything."""
    if isinstance(error, ReconcilerError):
        return error.fact, error.where, error.hint
    return f"a bug: {type(error).__name__}", "", "the log holds its traceback; please report it"


def failure_of(error: BaseException, config: Path | None = None) -> FailureDetail:
    """An error as the body of an answer about the changefeed of this file."""
    fact, where, hint = parts_of(error)
    message = str(error) if isinstance(error, ReconcilerError) else f"{fact}\n  hint: {hint}"
    message, hint = with_config(message, config), with_config(hint, config)
    return FailureDetail(error_code=code_of(error), error_msg=message, fact=fact, where=where, hint=hint)


def http_status_of(error: ReconcilerError) -> int:
    """Whose fault it is, in HTTP's terms."""
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, LeadershipLostError):
        return 409
    return 502 if isinstance(error, SourceError | TargetError) else 400


class RequestError(ReconcilerError):
    """A request that can't be done; `status` is HTTP's."""

    exit_code = 2
    status = 400


class NotFoundError(RequestError):
    """There is no such changefeed or message."""

    status = 404


class ConflictError(RequestError):
    """It can't be done in this state."""

    status = 409


class UnauthorizedError(RequestError):
    """The token is missing or wrong."""

    status = 401


class ForbiddenError(RequestError):
    """The request came by a name or a page that is not ours."""

    status = 403


class TooLargeError(RequestError):
    """The body is larger than any that is needed."""

    status = 413


class MediaTypeError(RequestError):
    """The body is in no form that is read here."""

    status = 415


class NoAnswerError(RequestError):
    """A server that had to be asked has not answered in time."""

    status = 504


class BusyError(RequestError):
    """As many requests are worked on as may be at once."""

    status = 503

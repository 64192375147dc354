"""Calls to the hub, and its errors as one sentence with the place and the fix."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from coloop.errors import HubFailed, StorageFull, is_full
from coloop.spec.hub_cache import HUB_ID, RepoKind, endpoint, is_offline

LOGIN = "log in with `hf auth login`, or set HF_TOKEN"
SECONDS = 10.0
"""After which a hub that does not answer is given up."""


def api() -> Any:
    """`huggingface_hub.HfApi` for the address in the environment."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), library_name="coloop")


def headers() -> dict[str, str]:
    """Headers of a request, with the user's token if there is one."""
    from huggingface_hub.utils import build_hf_headers

    built: Mapping[str, str] = build_hf_headers(library_name="coloop")
    return dict(built)


def check_id(repo: str) -> None:
    """Raise `HubFailed` for what is no id of a repository."""
    if HUB_ID.match(repo) is None:
        raise HubFailed(f"{repo!r} is no id of the hub; one is like `user/name`")


@contextmanager
def asking(repo: str, kind: RepoKind = "model", *, what: str = "") -> Iterator[None]:
    """Translate the errors of a call into `HubFailed`, or `StorageFull`.

    Args:
        what: the file that is read, for the message.
    """
    import httpx2
    from huggingface_hub import errors, get_token

    check_id(repo)
    place = f"{repo}: {what}" if what else repo
    at = endpoint()
    if is_offline():
        raise HubFailed(
            f"{place}: the hub is disabled (HF_HUB_OFFLINE); unset it, or give a folder instead"
        )
    try:
        yield
    except errors.GatedRepoError as error:
        raise HubFailed(
            f"{place} is gated: accept its terms at {_page(repo, kind)}, then {LOGIN}"
        ) from error
    except errors.DisabledRepoError as error:
        raise HubFailed(f"{place} has been disabled by the hub; choose another") from error
    except errors.RepositoryNotFoundError as error:
        raise HubFailed(_not_there(repo, kind)) from error
    except errors.RevisionNotFoundError as error:
        raise HubFailed(
            f"{repo} has no such revision; see the branches and tags at {_page(repo, kind)}"
        ) from error
    except errors.EntryNotFoundError as error:
        raise HubFailed(f"{place} is not among its files at {_page(repo, kind)}") from error
    except errors.HfHubHTTPError as error:
        if error.response.status_code == 401 and get_token() is None:
            raise HubFailed(_not_there(repo, kind)) from error
        raise HubFailed(f"{place}: {_status(error, at)}") from error
    except (errors.LocalTokenNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise HubFailed(f"{place}: {_first_line(error)}; {LOGIN}") from error
    except httpx2.TimeoutException as error:
        raise HubFailed(
            f"{place}: {at} did not answer in time; try again, or set HF_HUB_DOWNLOAD_TIMEOUT "
            "to more seconds"
        ) from error
    except (httpx2.ConnectError, httpx2.ProxyError) as error:
        raise HubFailed(
            f"{place}: {at} cannot be reached ({_first_line(error)}); check the network, "
            "HTTPS_PROXY or HF_ENDPOINT, or give a folder instead"
        ) from error
    except httpx2.HTTPError as error:
        raise HubFailed(
            f"{place}: the answer of {at} was cut off ({_first_line(error)}); the same command "
            "continues where it stopped"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        if is_full(error):
            raise StorageFull(f"{place}: the disk is full; free some space, then again") from error
        raise HubFailed(f"{place}: {at} answered something else: {_first_line(error)}") from error


def _not_there(repo: str, kind: RepoKind) -> str:
    return (
        f"there is no {kind} {repo} at {endpoint()}, or it is private; check its name, or {LOGIN}"
    )


def _status(error: Any, at: str) -> str:
    code = error.response.status_code
    match code:
        case 401:
            return f"{at} refuses the token (401); {LOGIN} anew"
        case 403:
            return (
                f"{at} does not allow it with this token (403); make one that may at "
                f"{at}/settings/tokens"
            )
        case 409:
            return f"{at} has something else of that name (409); choose another name"
        case 413:
            return f"{at} refuses files of this size (413)"
        case 429:
            return f"{at} allows no more requests just now (429); wait, or {LOGIN}"
        case _ if code >= 500:
            return f"{at} failed ({code}); try again later"
    return f"{at} refused ({code}): {_first_line(error)}"


def _page(repo: str, kind: RepoKind) -> str:
    return f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{repo}"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__

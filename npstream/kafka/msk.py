"""Tokens for Amazon MSK with IAM: signed by Amazon's own library, the extra `msk`, which need not be installed."""

from importlib import import_module
from importlib.util import find_spec

from npstream.errors import Fatal

MECHANISM = "AWS_MSK_IAM"
_SIGNER = "aws_msk_iam_sasl_signer"


class MskTokens:
    """What a client calls for a token; credentials are those of AWS's default chain."""

    def __init__(self, region: str) -> None:
        """Raises `Fatal` when the library is not installed."""
        if problem := signer_problem():
            raise Fatal(problem)
        self._region = region
        self.problem: str | None = None
        """Why there was no token the last time; the client itself does not say."""

    def __call__(self, _config: str) -> tuple[str, float]:
        """A token, and the second since 1970 at which it ends. Called on the client's own thread."""
        try:
            token, expires_ms = import_module(_SIGNER).MSKAuthTokenProvider.generate_auth_token(self._region)
        except Exception as error:  # the client would only say that there is no token
            self.problem = f"{type(error).__name__}: {error}"
            raise
        self.problem = None
        return token, expires_ms / 1000


def signer_problem() -> str | None:
    """Why no token can be signed here: the library is not installed."""
    if find_spec(_SIGNER) is not None:
        return None
    return f"mechanism {MECHANISM} needs Amazon's signer, which is not installed: install npstream[msk]"

"""The section of the schema registry."""

from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from npstream.settings.section import Section, refuse


class RegistrySection(Section):
    """A schema registry with Confluent's interface."""

    url: str = Field(min_length=1)
    """Its address: http:// or https://, with the path where it is below one."""
    username: str | None = None
    """User to log in as, where it asks for one."""
    password: SecretStr | None = None
    """Password of that user. Give it as `${file:/path}` or `${VARIABLE}`, not as text."""
    ca_file: str | None = None
    """PEM file of the authority that signed its certificate; the system's own by default."""

    @field_validator("url")
    @classmethod
    def _is_plain(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            refuse(["must begin with http:// or https://"])
        if "@" in url:  # not repeated: what is before it may be a password
            refuse(
                [
                    "must be without a login, because it is printed in messages and logs; give the login as "
                    "events.registry.username and events.registry.password"
                ]
            )
        return url

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        found = []
        if (self.username is None) != (self.password is None):
            found.append("username and password: one without the other; a login needs both")
        if self.ca_file is not None and not self.url.startswith("https://"):
            found.append("ca_file: needs a url that begins with https://")
        refuse(found)
        return self

    def secret(self) -> str | None:
        """The password in the clear."""
        return None if self.password is None else self.password.get_secret_value()

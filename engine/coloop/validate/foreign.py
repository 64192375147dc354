"""What a loop lets in from outside: Python that a model brings, services on other machines."""

from collections.abc import Iterator
from typing import Any

from coloop.plan.settings.facts import config_in
from coloop.plan.settings.families import refusal_of
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.model import PretrainedModel
from coloop.spec.remotes import (
    AllowedRemotes,
    refusal,
    refusal_of_secret,
    secret_value,
    secret_variable,
)
from coloop.validate.facts import Facts, found


def models_bring_no_code(facts: Facts) -> Iterator[Diagnostic]:
    """`trust_remote_code` hands the process of the engine to whoever wrote the model's folder."""
    for name in facts.nodes:
        model = facts.model(name)
        if not getattr(model, "trust_remote_code", False):
            continue
        change = Change(op="remove", path=f"nodes.{name}.model.trust_remote_code")
        yield found(
            "foreign.model_code",
            f"`{name}` runs the Python in the folder of `{model.path}` inside the engine, with all "
            "permissions of your user and no sandbox",
            hint=(
                "do so only if you have read that code; models that transformers supports need none"
            ),
            severity=Severity.WARNING,
            node=name,
            field="model.trust_remote_code",
            fixes=(Fix(title="Do not run the model's code", changes=(change,)),),
        )


def models_are_of_a_type_that_runs(facts: Facts) -> Iterator[Diagnostic]:
    """What a model's folder says of its type is looked at before anything is loaded."""
    for name in facts.nodes:
        model = facts.model(name)
        if not isinstance(model, PretrainedModel) or facts.is_outside(model.path):
            continue
        config = config_in(model.path, facts.root)
        reason = None if config is None else refusal_of(config)
        if reason is None or (model.trust_remote_code and "auto_map" in (config or {})):
            continue
        yield found(
            "foreign.architecture",
            f"the model of `{name}` cannot run: {reason}",
            hint=(
                "use a causal language model, such as one of type llama, qwen3, gemma3, mixtral or "
                "gpt_oss"
            ),
            node=name,
            field="model.path",
        )


def services_are_allowed(facts: Facts) -> Iterator[Diagnostic]:
    """Services that score or write are called only where the owner of this machine lists them."""
    allowed = AllowedRemotes.from_environment()
    for name, node in facts.nodes.items():
        source, rollout = getattr(node, "source", None), facts.rollout(name)
        if getattr(source, "type", None) == "remote":
            yield from _checked(name, "source", source, allowed)
        if rollout is not None and rollout.engine == "remote" and rollout.url is not None:
            yield from _checked(name, "rollout", rollout, allowed)


def _checked(
    node: str, section: str, service: Any, allowed: AllowedRemotes
) -> Iterator[Diagnostic]:
    url: str = service.url
    field, secret = f"{section}.url", getattr(service, "secret", None)
    refused = refusal(url, allowed)
    if refused is None and secret is not None:
        refused = refusal_of_secret(url)
    if refused is not None:
        yield found(
            "foreign.service",
            f"the service of `{node}` is not allowed: {refused.found}",
            hint=refused.hint,
            node=node,
            field=field,
        )
    if secret is not None and secret_value(secret) is None:
        variable = secret_variable(secret)
        yield found(
            "foreign.secret",
            f"the secret `{secret}` for the service of `{node}` is not set",
            hint=f"set {variable} where the run starts, or put it into a file "
            f"`{variable.lower()}` in COLOOP_SECRETS_DIR",
            severity=Severity.WARNING,
            node=node,
            field=f"{section}.secret",
        )


RULES = (models_bring_no_code, models_are_of_a_type_that_runs, services_are_allowed)

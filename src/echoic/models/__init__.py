"""Language models: extracting memories from what was said, and judging what may be global.

Any model that PydanticAI supports works. A model's output is a proposal: its form is checked here, and what
it may change in `memory`. Nothing here is imported unless a model is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from echoic.models.question import ModelClassifier, ModelExtractor, ModelSummarizer

TIMEOUT_S = 60.0
"""Time limit of an answer; nobody waits for it."""


def extractor_from(model: str | Model, *, timeout_s: float = TIMEOUT_S) -> ModelExtractor:
    """An extractor that uses `model`, "provider:model" or a PydanticAI model. Nothing is contacted yet.

    Raises:
        InvalidInput: the provider is unknown, or its packages are not installed.
    """
    checked(model)
    from echoic.models.question import ModelExtractor

    return ModelExtractor(model, timeout_s=timeout_s)


def classifier_from(model: str | Model, *, timeout_s: float = TIMEOUT_S) -> ModelClassifier:
    """A classifier that judges with `model` whether a text may be global; as for `extractor_from`."""
    checked(model)
    from echoic.models.question import ModelClassifier

    return ModelClassifier(model, timeout_s=timeout_s)


def summarizer_from(model: str | Model, *, timeout_s: float = TIMEOUT_S) -> ModelSummarizer:
    """A summarizer of long calls that uses `model`; as for `extractor_from`."""
    checked(model)
    from echoic.models.question import ModelSummarizer

    return ModelSummarizer(model, timeout_s=timeout_s)


def checked(model: object) -> None:
    """Raise `InvalidInput` unless `model` is a model, or names one of a known and installed provider."""
    try:
        from pydantic_ai.models import Model, parse_model_id
        from pydantic_ai.providers import infer_provider_class
    except ImportError as error:
        raise InvalidInput(
            f"model={model!r} needs PydanticAI: pip install 'echoic[agents]', or leave the model out"
        ) from error
    if isinstance(model, Model):
        return
    if not isinstance(model, str):
        raise InvalidInput(f"model must be 'provider:model' or a PydanticAI model, not {model!r:.80}")
    provider, name = parse_model_id(model)
    if provider is None or not name:
        raise InvalidInput(f"unknown model {model!r}: say 'provider:model', such as 'openai:gpt-5-mini'")
    try:
        infer_provider_class(provider)
    except ValueError as error:
        raise InvalidInput(f"unknown provider {provider!r} in model={model!r}") from error
    except ImportError as error:
        raise InvalidInput(
            f"model={model!r} needs the packages of {provider!r}: pip install 'pydantic-ai-slim[{provider}]'"
        ) from error


__all__ = ["TIMEOUT_S", "checked", "classifier_from", "extractor_from", "summarizer_from"]

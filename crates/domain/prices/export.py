"""Writes models.json, the price table that crates/domain embeds, from the Python package genai-prices (MIT).

    python3 -m venv /tmp/prices && /tmp/prices/bin/pip install --upgrade genai-prices
    /tmp/prices/bin/python crates/domain/prices/export.py

Only people run this, when prices moved; building and running Greenroom never does. The rule is: a wrong price is worse
than no price. What cannot be told from a model's name alone is left out. docs/decisions/prices.md says why.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from genai_prices.data import providers
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    ConditionalPrice,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)

NOW = datetime.now(timezone.utc)
PROVIDERS = {provider.id: provider for provider in providers}
FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}
# Fees that a text conversation does not cause, or only by a tool that the usage does not count.
IGNORED = {
    "cache_write_1h_mtok",
    "web_searches_kcount",
    "storage_searches_kcount",
    "input_audio_mtok",
    "cache_audio_read_mtok",
}


@dataclass
class Vendor:
    names: str
    """What its own model names look like; other names it lists are somebody else's."""
    skip: str = r"$^"
    """Names that are not text models, are retired, or have a price upstream that is known to be out of date."""
    shared: bool = False
    """Others serve its models under the same names, so each name is checked against everybody's."""
    resold: str | None = None
    """How OpenRouter prefixes its models."""


VENDORS = {
    "anthropic": Vendor(r"claude-", r"claude-(2|v1|v2)", resold="anthropic/"),
    "openai": Vendor(
        r"(gpt-[456]|gpt-3\.5-turbo|o[134]|chatgpt-4o|codex-mini)",
        r"image|audio|realtime|transcribe|tts|search|vision|32k|16k|instruct|0301|0613|deep-research|cyber|extended|\.ft",
        resold="openai/",
    ),
    # gemini-{pro,flash}-latest and their like follow whichever model is newest; this table does not.
    "google": Vendor(
        r"gemini-",
        r"gemini-(1\.|pro|flash|2\.5-flash-preview(-0[45]|:|$))|tts|live|image|embedding|robotics|omni|banana|audio",
        resold="google/",
    ),
    # grok-4-fast and -4-1-fast cost twice as much above 128k tokens, which upstream does not have.
    "x-ai": Vendor(r"grok-", r"grok-(2|latest)|voice|vision|4-fast|4-1-fast", resold="x-ai/"),
    "meta": Vendor(r"muse-"),
    # Only its current API names: the others have prices of other hosts or from before September 2025.
    "deepseek": Vendor(r"deepseek-(flash|v4-flash|v4-pro)", shared=True),
    # Names without a date are also what local runners call the open weights; *-latest is moved to newer models.
    "mistral": Vendor(r".*-(\d{4}|\d-\d)$", r"ocr|embed|voxtral|zai-|24b-instruct", shared=True),
    "cohere": Vendor(r"command-.*-\d{2}-\d{4}$", shared=True),
    "moonshotai": Vendor(r"kimi-", r"kimi-k2$", shared=True),
    "minimax": Vendor(r"minimax-m", r"minimax-m1", shared=True),
    "zai": Vendor(r"glm-", r"ocr|glm-4-32b", shared=True),
    "groq": Vendor(r"llama-.*-(instant|versatile)$", shared=True),
    # Bedrock is dearer in one region than across all, but the id says which; `regional.` is upstream's own word.
    "aws": Vendor(r"([a-z-]+\.)?anthropic\.claude-", r"^regional\."),
}
# They resell everybody's models under the maker's names at prices of their own; a bare name means its maker.
GATEWAYS = {"quicksilverpro", "github-copilot", "openrouter"}


@dataclass
class Names:
    exact: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)
    """These also match with a tail that names a release of the same model; see crates/domain/src/prices/names.rs."""


def names_of(clause, names: Names) -> None:
    match clause:
        case ClauseOr():
            for part in clause.or_:
                names_of(part, names)
        case ClauseAnd():
            # Only ever "starts with this, and is not a speech model"; no tail that names.rs knows says speech.
            for part in clause.and_:
                if not isinstance(part, ClauseRegex):
                    names_of(part, names)
        case ClauseEquals():
            names.exact.add(clause.equals.lower())
        case ClauseStartsWith():
            names.stems.add(stem(clause.starts_with))
        case ClauseEndsWith():
            names.stems.add(stem(clause.ends_with))
        case ClauseContains():
            names.stems.add(stem(clause.contains))
        case ClauseRegex():
            dated = re.fullmatch(r"\^(.+?)(-\\d\{8\}\$|\[-@\]\\d\{8\}\$|-\\d\{4\}-\\d\{2\}-\\d\{2\}\$|-\\d)", clause.regex)
            if not dated:
                raise SystemExit(f"a new kind of pattern, look at it: {clause.regex}")
            names.stems.add(stem(dated[1].replace("\\.", ".")))
        case _:
            raise SystemExit(f"a new kind of clause, look at it: {clause}")


def stem(text: str) -> str:
    """`claude-sonnet-4-2025`, `claude-sonnet-4@` and `us.anthropic.claude-opus-5-v1` are cut at the release."""
    return re.sub(r"(-20\d\d|-v\d|-|@)$", "", text.lower())


def micros(price: Decimal) -> int:
    return int(price * 1_000_000)


def whole(value: Decimal | TieredPrices) -> bool:
    """Whether it is an exact number of micro-dollars per million tokens."""
    parts = [value.base, *(tier.price for tier in value.tiers)] if isinstance(value, TieredPrices) else [value]
    return all(part * 1_000_000 == micros(part) for part in parts)


def rate(prices) -> dict | None:
    """None for a price that the table cannot say exactly."""
    known = {key: value for key, value in vars(prices).items() if value is not None and key not in IGNORED}
    if set(known) - set(FIELDS.values()) or not {"input_mtok", "output_mtok"} <= set(known):
        return None
    if not all(map(whole, known.values())):
        return None
    starts = {tier.start for value in known.values() if isinstance(value, TieredPrices) for tier in value.tiers}

    def at(start: int | None) -> dict:
        out = {}
        for name, key in FIELDS.items():
            value = known.get(key)
            if isinstance(value, TieredPrices):
                reached = [tier.price for tier in value.tiers if start is not None and tier.start <= start]
                value = reached[-1] if reached else value.base
            if value is not None:
                out[name] = micros(value)
        return out

    result = {"base": at(None)}
    if starts:
        result["above"] = [{"tokens": start, "prices": at(start)} for start in sorted(starts)]
    return result


def rates(model) -> list[dict] | None:
    """The price that holds today, then the announced ones, by date."""
    listed = model.prices if isinstance(model.prices, list) else [ConditionalPrice(prices=model.prices)]
    out, today = [], None
    for conditional in listed:
        priced = rate(conditional.prices)
        if priced is None:
            return None
        match conditional.constraint:
            case None:
                today = priced
            case StartDateConstraint() as start if start.active(NOW):
                today = priced
            case StartDateConstraint() as start:
                out.append({"from": f"{start.start_date}T00:00:00Z", **priced})
            case TimeOfDateConstraint():
                # The windows upstream know no weekends or holidays: take the dearer price, an upper bound.
                today = max(today, priced, key=lambda one: one["base"]["output"])
    return [today, *out]


def claims() -> dict[str, list]:
    """Who else serves a model under the same name, and what they charge for it."""
    out: dict[str, list] = {}
    for provider in providers:
        if provider.id in GATEWAYS:
            continue
        for model in provider.models:
            names = Names()
            try:
                names_of(model.match, names)
                priced = rates(model)
            except SystemExit:
                # Of vendors that are not exported, nothing but their clear cases matters.
                continue
            for name in names.exact | names.stems:
                out.setdefault(name, []).append(priced)
    return out


def main() -> None:
    claimed, models, dropped = claims(), [], []
    for vendor_id, vendor in VENDORS.items():
        own = re.compile(vendor.names)
        skip = re.compile(vendor.skip)
        for model in PROVIDERS[vendor_id].models:
            names = Names()
            names_of(model.match, names)
            keep = lambda name: own.match(name) and not skip.search(name)  # noqa: E731
            exact, stems = set(filter(keep, names.exact)), set(filter(keep, names.stems))
            priced = rates(model) if exact | stems else None
            if priced is None or not any(priced[0]["base"].values()):
                continue
            if vendor.shared:
                disputed = {name for name in exact | stems if any(other != priced for other in claimed.get(name, []))}
                dropped += sorted(disputed)
                exact, stems = exact - disputed, stems - disputed
            if vendor.resold:
                for sold in PROVIDERS["openrouter"].models:
                    bare = sold.id.removeprefix(vendor.resold)
                    if bare != sold.id and bare in exact | stems and rates(sold) == priced:
                        exact.add(sold.id)
            if exact | stems:
                entry = {"id": model.id.lower(), "vendor": vendor_id}
                entry |= {key: sorted(value) for key, value in (("exact", exact - stems), ("stems", stems)) if value}
                models.append(entry | {"rates": priced})

    seen: dict[str, str] = {}
    for entry in models:
        for name in entry.get("exact", []) + entry.get("stems", []):
            if name in seen:
                raise SystemExit(f"{name} names both {seen[name]} and {entry['id']}")
            seen[name] = entry["id"]

    head = json.dumps(f"genai-prices {version('genai-prices')}, {NOW.date()}")
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in models)
    path = Path(__file__).with_name("models.json")
    path.write_text(f'{{"version":{head},"models":[\n{lines}\n]}}\n')
    print(f"{len(models)} models, {len(seen)} names, {path.stat().st_size} bytes; sold at several prices, so left out:")
    print("  " + ", ".join(dropped))


main()

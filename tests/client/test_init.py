"""The public surface of `ahpkit.client`."""

from __future__ import annotations

import types

import ahpkit.client


def test_all_names_exactly_what_is_exported():
    exported = {
        name
        for name, value in vars(ahpkit.client).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert set(ahpkit.client.__all__) == exported | {"connect"}, "connect is also the name of its module"


def test_all_is_sorted_and_every_name_says_what_it_is():
    assert ahpkit.client.__all__ == sorted(ahpkit.client.__all__, key=lambda name: (name.islower(), name))
    undocumented = [
        name
        for name in ahpkit.client.__all__
        if name not in ("OnApproval", "OnAuthRequired", "OnConfirmation", "OnInput", "Outcome", "TurnEvent")
        and not getattr(ahpkit.client, name).__doc__
    ]
    assert undocumented == []


def test_connect_is_the_function():
    assert callable(ahpkit.client.connect)

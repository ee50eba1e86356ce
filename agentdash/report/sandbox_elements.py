"""Requests, policies and what was observed of a sandbox in documents."""

from __future__ import annotations

import msgspec

from agentdash.model.policy import Policy
from agentdash.model.requested import Requested, RequestField
from agentdash.model.thread import PolicyPeriod
from agentdash.model.times import iso
from agentdash.model.worker import Got


class RequestOriginReport(msgspec.Struct):
    """Where one part of a request was set."""

    field: str
    """`filesystem`, `network`, `writable_roots`, `approval`, `reviewer`, `profile`."""
    layer: str
    """`argv`, `environment`, `thread setting`, `role`, `profile`, `project config`, `user config` ..."""
    file: str | None
    line: int | None
    text: str


class RequestedReport(msgspec.Struct):
    """What was asked for; null or empty where nothing asked for it."""

    filesystem: str | None
    network: str | None
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None
    origin: list[RequestOriginReport]
    """Where each part was set."""
    environment: list[str]
    """Settings that keep `PATH`, `HOME` or `CODEX_HOME` from commands, or that set sandbox flags for them."""
    since: str | None
    """When it was asked for."""
    as_of: str | None
    """When the configuration files were read, if they have changed since; null: as they were then."""


def requested_report(requested: Requested) -> RequestedReport:
    """Return the report of a request."""
    policy = requested.policy

    def asked(field: RequestField, value: str | None) -> str | None:
        return value if requested.origin(field) is not None else None

    return RequestedReport(
        filesystem=asked(RequestField.FILESYSTEM, policy.filesystem.value),
        network=asked(RequestField.NETWORK, policy.network.value),
        writable_roots=list(policy.writable_roots) if requested.origin(RequestField.FILESYSTEM) else [],
        approval=asked(RequestField.APPROVAL, policy.approval),
        reviewer=asked(RequestField.REVIEWER, policy.reviewer),
        origin=[
            RequestOriginReport(
                field=origin.field.value,
                layer=origin.layer.value,
                file=origin.file,
                line=origin.line,
                text=origin.text,
            )
            for origin in requested.origins
        ],
        environment=[str(rule) for rule in requested.environment],
        since=iso(requested.since),
        as_of=iso(requested.read_at),
    )


class PolicyReport(msgspec.Struct):
    """A policy and when it came into force."""

    since: str | None
    origin: str
    """What stated it: the record of the session log."""
    line: int
    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None


def policy_report(period: PolicyPeriod) -> PolicyReport:
    """Return the report of a policy with its origin."""
    policy = period.policy
    return PolicyReport(
        since=iso(period.since),
        origin=period.origin,
        line=period.line,
        filesystem=str(policy.filesystem),
        network=str(policy.network),
        writable_roots=list(policy.writable_roots),
        approval=policy.approval,
        reviewer=policy.reviewer,
    )


class ConfiguredReport(msgspec.Struct):
    """The policy in force."""

    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None


def configured_report(policy: Policy) -> ConfiguredReport:
    """Return the report of a policy."""
    return ConfiguredReport(
        filesystem=str(policy.filesystem),
        network=str(policy.network),
        writable_roots=list(policy.writable_roots),
        approval=policy.approval,
    )


class GotReport(msgspec.Struct):
    """What was observed of the newest command; null where it was not observed."""

    network_flag: str | None
    sandbox_flag: str | None
    seccomp: int | None
    no_new_privs: bool | None
    network_namespace: str | None
    sandboxed: bool | None


def got_report(got: Got) -> GotReport:
    """Return the report of what was observed."""
    return GotReport(
        network_flag=got.network_flag,
        sandbox_flag=got.sandbox_flag,
        seccomp=got.seccomp,
        no_new_privs=got.no_new_privs,
        network_namespace=got.network_namespace,
        sandboxed=got.sandboxed,
    )

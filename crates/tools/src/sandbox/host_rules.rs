//! Settings and WebFetch rules as the proxy's lists of hosts. Pure.

use whimbrel_config::settings::SandboxSettings;
use whimbrel_config::settings::sandbox::SourcedEntry;
use whimbrel_policy::RuleSource;
use whimbrel_sandbox::proxy::domains::{DomainLists, DomainPattern, PatternError, UnlistedHosts};
use whimbrel_wire::permission::PermissionBehavior;

use super::PolicyFacts;
use super::file_rules::is_trusted;

/// Tool whose rules name hosts.
const WEB_FETCH: &str = "WebFetch";

/// Checks the hosts of the settings.
pub fn check_hosts(settings: &SandboxSettings) -> Result<(), String> {
    let network = &settings.network;
    parse(&network.allowed_domains, "allowedDomains", DomainPattern::parse_allowed)?;
    parse(&network.denied_domains, "deniedDomains", DomainPattern::parse_denied)?;
    Ok(())
}

fn parse(
    entries: &[SourcedEntry],
    key: &str,
    parse: fn(&str) -> Result<DomainPattern, PatternError>,
) -> Result<Vec<DomainPattern>, String> {
    let parse = |entry: &SourcedEntry| {
        parse(&entry.text).map_err(|error| format!("{}: sandbox.network.{key}: {error}.", entry.source))
    };
    entries.iter().map(parse).collect()
}

/// Builds the lists.
pub(crate) fn build_lists(facts: &PolicyFacts) -> Result<DomainLists, String> {
    let network = &facts.settings.network;
    let rules = &facts.permissions.rules;
    let domains = |behavior, managed_only: bool, trusted_only: bool| {
        rules
            .with_behavior(behavior)
            .filter(|rule| rule.sourced.rule.tool == WEB_FETCH)
            .filter(move |rule| !trusted_only || is_trusted(&rule.sourced))
            .filter(move |rule| !managed_only || rule.sourced.source == RuleSource::Managed)
            .filter_map(|rule| rule.sourced.rule.content.as_deref()?.strip_prefix("domain:"))
            .map(str::trim)
    };
    // Patterns that the proxy does not know, such as a star within a label, open nothing.
    let allowed = domains(PermissionBehavior::Allow, network.managed_domains_only, true)
        .filter_map(|domain| DomainPattern::parse_allowed(domain).ok());
    let denied = domains(PermissionBehavior::Deny, false, false)
        .filter_map(|domain| DomainPattern::parse_denied(domain).ok());
    Ok(DomainLists {
        allowed: parse(&network.allowed_domains, "allowedDomains", DomainPattern::parse_allowed)?
            .into_iter()
            .chain(allowed)
            .collect(),
        denied: parse(&network.denied_domains, "deniedDomains", DomainPattern::parse_denied)?
            .into_iter()
            .chain(denied)
            .collect(),
        unlisted: match network.strict_allowlist || network.managed_domains_only {
            true => UnlistedHosts::Refuse,
            false => UnlistedHosts::Ask,
        },
    })
}

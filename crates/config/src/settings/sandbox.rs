//! Settings of the sandbox, merged over all layers. Pure.
//!
//! Lists are united, switches take the value of the strongest source. Files of a project, also those that the user keeps
//! for it, may narrow the sandbox; what they say to widen it is left out with a warning. The keys that only an
//! administrator may set are ignored elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::settings::layer::SettingsLayer;
use crate::settings::sources::LayerSource;

/// Settings of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    pub enabled: bool,
    /// Without a sandbox there is no session. Otherwise commands run unconfined, with the usual questions.
    pub fail_if_unavailable: bool,
    pub auto_allow_bash: bool,
    /// The model may ask to run a command unconfined.
    pub allow_unsandboxed_commands: bool,
    pub excluded_commands: Vec<String>,
    pub network: NetworkSettings,
    pub files: FileSettings,
    /// Variables that confined commands do not get.
    pub hidden_variables: Vec<String>,
    /// Command pattern to paths and hosts that are left out of reports.
    pub ignored_violations: BTreeMap<String, Vec<String>>,
    pub allow_weaker_tiers: bool,
    pub allow_nested_namespaces: bool,
    pub bwrap_path: Option<String>,
    /// Settings that have no effect, and those that weaken the sandbox.
    pub warnings: Vec<String>,
    /// Settings that cannot be carried out.
    pub errors: Vec<String>,
}

/// What confined commands reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    pub allowed_domains: Vec<SourcedEntry>,
    pub denied_domains: Vec<SourcedEntry>,
    /// Hosts on no list are refused without a question.
    pub strict_allowlist: bool,
    /// Only an administrator's allowed hosts count, rules included.
    pub managed_domains_only: bool,
    pub unix_sockets: Vec<SandboxPath>,
    pub all_unix_sockets: bool,
    pub local_binding: bool,
    /// Ports of the host's own proxy on this machine.
    pub http_proxy_port: Option<u16>,
    pub socks_proxy_port: Option<u16>,
}

/// Which files confined commands may write and read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// No file layer.
    pub disabled: bool,
    pub allow_write: Vec<SandboxPath>,
    pub deny_write: Vec<SandboxPath>,
    pub deny_read: Vec<SandboxPath>,
    pub allow_read: Vec<SandboxPath>,
}

/// An entry of a list, with the name of its source for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedEntry {
    pub text: String,
    pub source: String,
}

/// A path or pattern: absolute, or below the home directory as `~/..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPath {
    pub text: String,
    /// Name of the settings that have it, for messages.
    pub source: String,
    /// No pattern, whatever characters it has.
    pub is_literal: bool,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            fail_if_unavailable: true,
            auto_allow_bash: false,
            allow_unsandboxed_commands: true,
            excluded_commands: Vec::new(),
            network: NetworkSettings::default(),
            files: FileSettings::default(),
            hidden_variables: Vec::new(),
            ignored_violations: BTreeMap::new(),
            allow_weaker_tiers: false,
            allow_nested_namespaces: false,
            bwrap_path: None,
            warnings: Vec::new(),
            errors: Vec::new(),
        }
    }
}

impl SandboxSettings {
    /// Merges the layers, weakest first.
    pub(crate) fn merge(layers: &[SettingsLayer], project_root: &Path) -> Self {
        let sections = layers.iter().filter_map(|layer| {
            Some(Section { layer, project_root, values: layer.values.get("sandbox")?.as_object()? })
        });
        let mut merged = Self::default();
        let sections: Vec<Section<'_>> = sections.collect();
        for section in &sections {
            section.add_to(&mut merged);
        }
        let is_managed = |section: &&Section<'_>| section.layer.origin.source == LayerSource::Managed;
        if sections.iter().filter(is_managed).any(|section| section.values.contains_key("filesystem")) {
            merged.files.disabled = false;
        }
        merged.add_warnings();
        merged
    }

    /// Warns about switches that weaken the sandbox or have no effect.
    fn add_warnings(&mut self) {
        if !self.enabled {
            return;
        }
        let uses_host_proxy =
            self.network.http_proxy_port.is_some() || self.network.socks_proxy_port.is_some();
        let has_lists = !self.network.allowed_domains.is_empty() || !self.network.denied_domains.is_empty();
        let rows = [
            (
                self.network.all_unix_sockets,
                "sandbox.network.allowAllUnixSockets opens the local sockets of this machine: D-Bus, Docker and key agents \
                 run programs outside of the sandbox.",
            ),
            (
                self.allow_nested_namespaces,
                "sandbox.allowNestedUserNamespaces: protected files of the project are no boundary for commands that make \
                 namespaces.",
            ),
            (
                uses_host_proxy && has_lists,
                "sandbox.network.httpProxyPort and socksProxyPort: the proxy of the host decides, so the lists of hosts \
                 have no effect.",
            ),
            (
                self.allow_weaker_tiers,
                "sandbox.enableWeakerNestedSandbox: commands may see the processes of this machine.",
            ),
        ];
        self.warnings.extend(rows.iter().filter(|(is_set, _)| *is_set).map(|(_, text)| (*text).to_owned()));
    }
}

/// The object `sandbox` of one layer.
struct Section<'a> {
    layer: &'a SettingsLayer,
    project_root: &'a Path,
    values: &'a Map<String, Value>,
}

impl Section<'_> {
    fn add_to(&self, merged: &mut SandboxSettings) {
        let mut ignored = Vec::new();
        let trusted =
            matches!(self.layer.origin.source, LayerSource::User | LayerSource::Flag | LayerSource::Managed);
        // A switch that is safer when it has the value `safe`.
        let mut set = |target: &mut bool, path: &[&str], safe: bool| {
            let Some(value) = self.value(path).and_then(Value::as_bool) else { return };
            if trusted || value == safe {
                *target = value;
            } else if *target == safe {
                ignored.push(path.join("."));
            }
        };
        set(&mut merged.enabled, &["enabled"], true);
        set(&mut merged.fail_if_unavailable, &["failIfUnavailable"], true);
        set(&mut merged.allow_unsandboxed_commands, &["allowUnsandboxedCommands"], false);
        set(&mut merged.network.strict_allowlist, &["network", "strictAllowlist"], true);
        set(&mut merged.network.all_unix_sockets, &["network", "allowAllUnixSockets"], false);
        set(&mut merged.files.disabled, &["filesystem", "disabled"], false);
        set(&mut merged.allow_weaker_tiers, &["enableWeakerNestedSandbox"], false);
        set(&mut merged.allow_nested_namespaces, &["allowNestedUserNamespaces"], false);
        self.set_from_any(&mut merged.auto_allow_bash, &["autoAllowBashIfSandboxed"]);
        self.set_from_any(&mut merged.network.local_binding, &["network", "allowLocalBinding"]);
        self.add_narrowing_lists(merged);
        self.add_widening_lists(merged, trusted, &mut ignored);
        self.add_host_proxy(merged, trusted, &mut ignored);
        self.add_managed_keys(merged);
        self.refuse_confined_programs(merged);
        if !ignored.is_empty() {
            merged.warnings.push(format!(
                "{}: ignored, because only the settings of the user, the host or an administrator may widen the sandbox: \
                 {}.",
                self.layer.origin.display_name(),
                ignored.iter().map(|key| format!("sandbox.{key}")).collect::<Vec<_>>().join(", ")
            ));
        }
    }

    fn value(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.values.get(*first)?, |value, key| value.get(*key))
    }

    fn items(&self, path: &[&str]) -> &[Value] {
        self.value(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn set_from_any(&self, target: &mut bool, path: &[&str]) {
        *target = self.value(path).and_then(Value::as_bool).unwrap_or(*target);
    }

    fn texts<'a>(&'a self, path: &[&str]) -> impl Iterator<Item = String> + use<'a> {
        self.items(path).iter().filter_map(|item| item.as_str().map(str::to_owned))
    }

    fn hosts<'a>(&'a self, path: &[&str]) -> impl Iterator<Item = SourcedEntry> + use<'a> {
        let source = self.layer.origin.display_name();
        self.texts(path).map(move |text| SourcedEntry { text, source: source.clone() })
    }

    fn paths<'a>(&'a self, path: &[&str]) -> impl Iterator<Item = SandboxPath> + use<'a> {
        self.items(path).iter().filter_map(|item| {
            let is_literal = item.get("literal").and_then(Value::as_bool) == Some(true);
            let text = item.as_str().or_else(|| item.get("path")?.as_str())?;
            let source = self.layer.origin.display_name();
            Some(SandboxPath { text: self.absolute(text), source, is_literal })
        })
    }

    /// Makes a path absolute, unless it is below the home directory.
    fn absolute(&self, text: &str) -> String {
        if text.starts_with('/') || text == "~" || text.starts_with("~/") {
            return text.to_owned();
        }
        let base = match self.layer.origin.source {
            LayerSource::User | LayerSource::Managed => self.layer.origin.base.as_path(),
            LayerSource::Project | LayerSource::Local | LayerSource::Flag => self.project_root,
        };
        base.join(text.strip_prefix("./").unwrap_or(text)).display().to_string()
    }

    fn add_narrowing_lists(&self, merged: &mut SandboxSettings) {
        merged.network.denied_domains.extend(self.hosts(&["network", "deniedDomains"]));
        merged.files.deny_write.extend(self.paths(&["filesystem", "denyWrite"]));
        merged.files.deny_read.extend(self.paths(&["filesystem", "denyRead"]));
        merged.files.deny_read.extend(self.paths(&["credentials", "files"]));
        for variable in self.items(&["credentials", "envVars"]) {
            merged.hidden_variables.extend(variable.get("name").and_then(Value::as_str).map(str::to_owned));
        }
        let masked = [&["credentials", "files"], &["credentials", "envVars"]]
            .into_iter()
            .flat_map(|path| self.items(path))
            .any(|item| item.get("mode").and_then(Value::as_str) == Some("mask"));
        if masked {
            merged.warnings.push(
                "sandbox.credentials: the mode mask is not supported; these credentials are denied instead."
                    .into(),
            );
        }
        let ignored = self.value(&["ignoreViolations"]).and_then(Value::as_object);
        for (command, entries) in ignored.into_iter().flatten() {
            let entries = entries.as_array().into_iter().flatten().filter_map(Value::as_str);
            let known = merged.ignored_violations.entry(command.clone()).or_default();
            known.extend(entries.map(str::to_owned));
        }
    }

    fn add_widening_lists(&self, merged: &mut SandboxSettings, trusted: bool, ignored: &mut Vec<String>) {
        let lists: [&[&str]; 5] = [
            &["excludedCommands"],
            &["network", "allowedDomains"],
            &["network", "allowUnixSockets"],
            &["filesystem", "allowWrite"],
            &["filesystem", "allowRead"],
        ];
        if !trusted {
            ignored
                .extend(lists.iter().filter(|path| !self.items(path).is_empty()).map(|path| path.join(".")));
            return;
        }
        merged.excluded_commands.extend(self.texts(lists[0]));
        merged.network.allowed_domains.extend(self.hosts(lists[1]));
        merged.network.unix_sockets.extend(self.paths(lists[2]));
        merged.files.allow_write.extend(self.paths(lists[3]));
        merged.files.allow_read.extend(self.paths(lists[4]));
    }

    /// Ports of the host's proxy. A host that passes lists and no port wants our proxy.
    fn add_host_proxy(&self, merged: &mut SandboxSettings, trusted: bool, ignored: &mut Vec<String>) {
        let port = |key| {
            let port = self.value(&["network", key]).and_then(Value::as_u64);
            port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
        };
        let (http, socks) = (port("httpProxyPort"), port("socksProxyPort"));
        if !trusted {
            ignored.extend(http.map(|_| "network.httpProxyPort".to_owned()));
            ignored.extend(socks.map(|_| "network.socksProxyPort".to_owned()));
            return;
        }
        let network = &mut merged.network;
        let has_lists = ["allowedDomains", "deniedDomains"]
            .iter()
            .any(|key| self.value(&["network", key]).is_some_and(Value::is_array));
        if self.layer.origin.source == LayerSource::Flag && has_lists && http.is_none() && socks.is_none() {
            (network.http_proxy_port, network.socks_proxy_port) = (None, None);
        }
        network.http_proxy_port = http.or(network.http_proxy_port);
        network.socks_proxy_port = socks.or(network.socks_proxy_port);
        if self.value(&["network", "tlsTerminate"]).is_some_and(|value| !value.is_null()) {
            merged.errors.push(format!(
                "{}: sandbox.network.tlsTerminate is not supported: TLS connections are passed on unopened. Remove the \
                 key.",
                self.layer.origin.display_name()
            ));
        }
    }

    fn add_managed_keys(&self, merged: &mut SandboxSettings) {
        if self.layer.origin.source != LayerSource::Managed {
            return;
        }
        let is_on = |path: &[&str]| self.value(path) == Some(&Value::Bool(true));
        if is_on(&["network", "allowManagedDomainsOnly"]) {
            merged.network.managed_domains_only = true;
            merged.network.allowed_domains = self.hosts(&["network", "allowedDomains"]).collect();
        }
        if is_on(&["filesystem", "allowManagedReadPathsOnly"]) {
            merged.files.allow_read = self.paths(&["filesystem", "allowRead"]).collect();
        }
        merged.bwrap_path = self
            .value(&["bwrapPath"])
            .and_then(Value::as_str)
            .map(str::to_owned)
            .or(merged.bwrap_path.take());
    }

    fn refuse_confined_programs(&self, merged: &mut SandboxSettings) {
        if !self.items(&["confine"]).is_empty() {
            merged.errors.push(format!(
                "{}: sandbox.confine is not supported: MCP servers and hooks run unconfined. Remove the key.",
                self.layer.origin.display_name()
            ));
        }
    }
}

#[cfg(test)]
mod tests;

//! The policy as a profile of `/usr/bin/sandbox-exec`. Pure text. It is untested on a Mac: nothing starts it yet.
//!
//! Paths are parameters of the profile (`-D name=path`), never part of its text. Later rules win, so denials come last.

use std::path::{Path, PathBuf};

use crate::policy::{FileLayer, FileRules, LoopbackScope, Network, PathRule, Policy, UnixSockets};

/// Git's files that decide what git executes, at the top of each writable root.
const GIT_NAMES: [&str; 4] = [".git/hooks", ".git/config", ".git/config.worktree", ".git/modules"];

/// Services that programs need to start at all.
const SERVICES: [&str; 6] = [
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.SystemConfiguration.configd",
    "com.apple.bsd.dirhelper",
];

/// A profile and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub text: String,
    pub parameters: Vec<(String, PathBuf)>,
}

impl Profile {
    /// Returns the arguments of `sandbox-exec` before the command.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments = vec!["-p".into(), self.text.clone().into()];
        for (name, path) in &self.parameters {
            let mut value = std::ffi::OsString::from(format!("{name}="));
            value.push(path);
            arguments.extend(["-D".into(), value]);
        }
        arguments
    }
}

/// Writes the profile of a policy. `proxy_port` is the port of the proxy on loopback.
pub fn profile(policy: &Policy, proxy_port: u16) -> Profile {
    let mut writer = Writer::default();
    writer.line("(version 1)");
    writer.line("(deny default (with no-log))");
    for rule in [
        "process-exec",
        "process-fork",
        "process-info* (target same-sandbox)",
        "signal (target same-sandbox)",
    ] {
        writer.line(&format!("(allow {rule})"));
    }
    for rule in ["sysctl-read", "system-socket", "pseudo-tty", "ipc-posix-sem", "ipc-posix-shm", "file-ioctl"]
    {
        writer.line(&format!("(allow {rule})"));
    }
    let services: Vec<_> = SERVICES.iter().map(|name| format!("(global-name \"{name}\")")).collect();
    writer.line(&format!("(allow mach-lookup {})", services.join(" ")));
    match &policy.files {
        FileLayer::Open => writer.line("(allow file*)"),
        FileLayer::Confined(rules) => write_file_rules(policy, rules, &mut writer),
    }
    write_network_rules(policy, proxy_port, &mut writer);
    Profile { text: writer.text, parameters: writer.parameters }
}

fn write_file_rules(policy: &Policy, rules: &FileRules, writer: &mut Writer) {
    writer.line("(allow file-read*)");
    let (literals, patterns): (Vec<_>, Vec<_>) =
        rules.deny_read.iter().partition(|rule| matches!(rule, PathRule::Literal(_)));
    for rule in literals {
        writer.path_rule("deny file-read* file-write*", rule);
    }
    for path in &rules.allow_read {
        writer.path("allow file-read*", path);
    }
    // A pattern holds inside a wider permission.
    for rule in patterns {
        writer.path_rule("deny file-read* file-write*", rule);
    }
    let roots: Vec<&PathBuf> = [&policy.working_directory, &policy.scratch]
        .into_iter()
        .chain(&rules.work_directories)
        .chain(&rules.allow_write)
        .collect();
    for root in &roots {
        writer.path("allow file-write*", root);
    }
    for device in ["null", "zero", "tty", "dtracehelper", "random", "urandom"] {
        writer.line(&format!("(allow file-write-data (literal \"/dev/{device}\"))"));
    }
    writer.line("(allow file-write-data (subpath \"/dev/fd\"))");
    for root in roots.iter().filter(|root| **root != &policy.scratch) {
        let names = rules.protected_names.iter().map(String::as_str).chain(GIT_NAMES);
        for name in names {
            protect(root, &root.join(name), writer);
        }
    }
    for rule in &rules.deny_write {
        match rule {
            PathRule::Literal(path) => {
                let root = roots.iter().find(|root| path.starts_with(root));
                protect(root.map_or(Path::new("/"), |root| root.as_path()), path, writer);
            }
            PathRule::Glob(_) => writer.path_rule("deny file-write*", rule),
        }
    }
    for path in &rules.hidden {
        writer.path("deny file-read* file-write*", path);
    }
}

/// Denies writes to a path, and the removal of each folder above it: renaming one would free the path.
fn protect(root: &Path, path: &Path, writer: &mut Writer) {
    writer.path("deny file-write*", path);
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
        writer.literal("deny file-write-unlink", folder);
    }
}

fn write_network_rules(policy: &Policy, proxy_port: u16, writer: &mut Writer) {
    match policy.network {
        Network::Isolated => {}
        Network::Proxied(scope) => {
            writer.line(&format!("(allow network-outbound (remote ip \"localhost:{proxy_port}\"))"));
            if scope == LoopbackScope::Session {
                // Never outbound by a local address: that would open every connection.
                writer.line("(allow network-bind (local ip \"localhost:*\"))");
                writer.line("(allow network-inbound (local ip \"localhost:*\"))");
            }
        }
    }
    match &policy.unix_sockets {
        UnixSockets::Closed => {}
        UnixSockets::All => writer.line("(allow network* (local unix-socket) (remote unix-socket))"),
        UnixSockets::Paths(paths) => {
            for path in paths {
                let names = writer.add_parameters(path);
                for name in names {
                    writer.line(&format!(
                        "(allow network-outbound (remote unix-socket (path-literal (param \"{name}\"))))"
                    ));
                }
            }
        }
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    parameters: Vec<(String, PathBuf)>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn path(&mut self, action: &str, path: &Path) {
        for name in self.add_parameters(path) {
            self.line(&format!("({action} (subpath (param \"{name}\")))"));
        }
    }

    fn literal(&mut self, action: &str, path: &Path) {
        for name in self.add_parameters(path) {
            self.line(&format!("({action} (literal (param \"{name}\")))"));
        }
    }

    fn path_rule(&mut self, action: &str, rule: &PathRule) {
        match rule {
            PathRule::Literal(path) => self.path(action, path),
            PathRule::Glob(pattern) => {
                for pattern in spellings(Path::new(pattern)) {
                    let regex = glob_to_regex(&pattern.to_string_lossy());
                    self.line(&format!("({action} (regex #\"{regex}\"))"));
                }
            }
        }
    }

    /// Returns the names of the parameters for a path, one per spelling.
    fn add_parameters(&mut self, path: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for path in spellings(path) {
            let known =
                self.parameters.iter().find(|(_, known)| *known == path).map(|(name, _)| name.clone());
            names.push(known.unwrap_or_else(|| {
                let name = format!("PATH{}", self.parameters.len());
                self.parameters.push((name.clone(), path));
                name
            }));
        }
        names
    }
}

/// Returns a path with and without `/private`, where the system has links.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    for top in ["/tmp", "/var", "/etc"] {
        let private = format!("/private{top}");
        if let Ok(rest) = path.strip_prefix(top) {
            all.push(Path::new(&private).join(rest));
        } else if let Ok(rest) = path.strip_prefix(&private) {
            all.push(Path::new(top).join(rest));
        }
    }
    all
}

/// Translates a pattern. Everything but its signs is literal, so that no text can end the expression.
fn glob_to_regex(pattern: &str) -> String {
    let mut regex = String::from("^");
    let mut rest = pattern.chars().peekable();
    let mut depth = 0_usize;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.peek() == Some(&'*') => {
                rest.next();
                if rest.peek() == Some(&'/') {
                    rest.next();
                    regex.push_str("(.*/)?");
                } else {
                    regex.push_str(".*");
                }
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '{' => {
                depth += 1;
                regex.push('(');
            }
            '}' if depth > 0 => {
                depth -= 1;
                regex.push(')');
            }
            ',' if depth > 0 => regex.push('|'),
            c if c.is_alphanumeric() || "/-_ ".contains(c) => regex.push(c),
            // In brackets nothing but these has a meaning of its own.
            '^' => regex.push_str("\\^"),
            '\\' | '"' => regex.push('.'),
            c => {
                regex.push('[');
                regex.push(c);
                regex.push(']');
            }
        }
    }
    regex.extend(std::iter::repeat_n(')', depth));
    regex.push_str("(/.*)?$");
    regex
}

#[cfg(test)]
mod tests;

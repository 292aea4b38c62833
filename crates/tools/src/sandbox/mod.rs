//! The sandbox of a session: which commands it confines how, and what it reports. The confinement itself is
//! [`whimbrel_sandbox`].
//!
//! - [`SandboxProbe`]: what this machine can do, found out once per process
//! - [`SessionSandbox`]: starts with the first confined command; covers, network and proxy are shared by all commands of
//!   the session
//! - `file_rules`, `host_rules`: settings and permission rules as rules of the kernel and of the proxy
//! - [`report`]: what was refused, for the model and the host

mod file_rules;
mod host_rules;
mod probe;
pub mod report;
#[cfg(target_os = "linux")]
mod session;
#[cfg(not(target_os = "linux"))]
#[path = "session_unavailable.rs"]
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_config::settings::{SandboxSettings, home_dir};
use whimbrel_policy::PermissionSet;
use whimbrel_sandbox::proxy::Upstream;

pub use file_rules::{check_paths, unenforced_rules};
pub use host_rules::check_hosts;
pub use probe::{SandboxLauncher, SandboxProbe, SandboxTier};
pub use session::{ConfinedRun, Prepared, SessionSandbox, can_open_single_sockets};
pub use whimbrel_process::ConfinedCommand;

/// Facts from which the policy of a command is made, as they are when it starts.
#[derive(Debug, Clone)]
pub struct PolicyFacts {
    pub settings: Arc<SandboxSettings>,
    /// Rules, mode and directories.
    pub permissions: Arc<PermissionSet>,
    /// Directory in which the session was started.
    pub root: PathBuf,
    /// Worktree that the session or the agent has entered.
    pub worktree: Option<PathBuf>,
    /// Files that configure the session.
    pub protected_paths: Vec<PathBuf>,
    /// Files that every command reads first.
    pub env_files: Vec<PathBuf>,
    /// The user's configuration directory, which has the engine's credentials.
    pub config_dir: Option<PathBuf>,
    /// Environment of the engine.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl PolicyFacts {
    #[cfg(test)]
    pub(crate) fn for_test(environment: BTreeMap<String, String>) -> Self {
        use whimbrel_policy::RuleSet;
        use whimbrel_policy::fs::RealFs;
        use whimbrel_policy::work_dirs::WorkDirs;
        use whimbrel_wire::permission::PermissionMode;

        let permissions = PermissionSet {
            rules: RuleSet::default(),
            mode: PermissionMode::Default,
            dirs: WorkDirs::new(Path::new("/"), &RealFs),
        };
        Self {
            settings: Arc::default(),
            permissions: Arc::new(permissions),
            root: "/".into(),
            worktree: None,
            protected_paths: Vec::new(),
            env_files: Vec::new(),
            config_dir: None,
            environment: Arc::new(environment),
        }
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        home_dir(self.environment.get("HOME").map(String::as_str))
    }

    /// Makes a path of the settings absolute.
    pub(crate) fn expand(&self, text: &str) -> Option<PathBuf> {
        match text.strip_prefix('~') {
            None => Some(PathBuf::from(text)),
            Some(rest) => Some(self.home()?.join(rest.trim_start_matches('/'))),
        }
    }

    /// The proxy that the engine itself uses: its variable and its URL.
    fn upstream_proxy(&self) -> Option<(&'static str, &str)> {
        let variable = |name: &'static str| Some((name, self.environment.get(name)?.as_str()));
        ["HTTPS_PROXY", "https_proxy"].into_iter().filter_map(variable).find(|(_, url)| !url.is_empty())
    }

    /// Says that the engine's own proxy cannot be used, if that is so.
    pub fn upstream_warning(&self) -> Option<String> {
        let (name, url) = self.upstream_proxy()?;
        Upstream::parse(url).is_none().then(|| {
            format!(
                "{name}: confined commands connect without this proxy, because only http:// proxies are supported."
            )
        })
    }

    /// Directory below which the folder for temporary files is made.
    pub(crate) fn temp_dir(&self) -> PathBuf {
        let named = self.environment.get("TMPDIR").map(Path::new);
        named.filter(|path| path.is_absolute() && path.is_dir()).unwrap_or(Path::new("/tmp")).to_owned()
    }
}

/// Standard input of a confined command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStdin {
    Empty,
    Piped,
}

/// Variables by which a session reaches its models; confined commands do not get them.
const MODEL_ADDRESS_SUFFIX: &str = "_BASE_URL";
const MODEL_ADDRESS_PREFIXES: [&str; 4] = ["ANTHROPIC_", "OPENAI_", "CLAUDE_", "WHIMBREL_"];

/// Removes what a confined command must not know from its environment.
pub(crate) fn clean_environment(environment: &mut BTreeMap<String, String>, settings: &SandboxSettings) {
    environment.retain(|name, _| {
        let is_model_address = name.ends_with(MODEL_ADDRESS_SUFFIX)
            && MODEL_ADDRESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        !is_model_address && !settings.hidden_variables.contains(name)
    });
}

/// Caches of programs: the variable, and the usual folder below the home directory.
const CACHES: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("npm_config_cache", ".npm"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("GOCACHE", ".cache/go-build"),
];

/// Moves caches into the folder for temporary files, unless the variable is set or the usual folder is writable inside.
pub(crate) fn move_caches(
    environment: &mut BTreeMap<String, String>,
    scratch: &Path,
    home: Option<&Path>,
    is_writable: impl Fn(&Path) -> bool,
) {
    for (variable, folder) in CACHES {
        let is_usable = home.is_some_and(|home| is_writable(&home.join(folder)));
        if !is_usable && !environment.contains_key(variable) {
            let cache = scratch.join("cache").join(folder.rsplit('/').next().unwrap_or(folder));
            environment.insert(variable.to_owned(), cache.display().to_string());
        }
    }
}

/// What the model reads about the sandbox in the description of Bash.
pub fn describe(settings: &SandboxSettings) -> String {
    let mut text = String::from(
        "\n\nCommands run in a sandbox of the kernel. Only the working directories and $TMPDIR, which is private like /tmp, \
         are writable; configuration of git, editors and shells is not. Hosts are reached only through a proxy, which \
         refuses those that are not allowed.",
    );
    text.push_str(match settings.allow_unsandboxed_commands {
        true => {
            " If a command fails because of the sandbox, as the result then says, you may run it again with \
             dangerouslyDisableSandbox: true, which asks the user. Do not use it otherwise."
        }
        false => " There is no way to run a command outside of it.",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_models_and_hidden_variables_are_removed() {
        let names = ["PATH", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "TOKEN", "MY_BASE_URL"];
        let mut environment: BTreeMap<String, String> =
            names.into_iter().map(|name| (name.to_owned(), "x".to_owned())).collect();
        let settings = SandboxSettings { hidden_variables: vec!["TOKEN".into()], ..Default::default() };
        clean_environment(&mut environment, &settings);
        assert_eq!(environment.keys().collect::<Vec<_>>(), ["MY_BASE_URL", "PATH"]);
    }

    #[test]
    fn proxies_of_the_engine_that_cannot_be_used_are_named() {
        let rows = [
            (&[][..], false),
            (&[("HTTPS_PROXY", "http://proxy.test:3128")], false),
            (&[("HTTPS_PROXY", ""), ("https_proxy", "socks5://proxy.test")], true),
            (&[("HTTPS_PROXY", "https://proxy.test")], true),
        ];
        for (variables, is_named) in rows {
            let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let facts = PolicyFacts::for_test(environment.collect());
            assert_eq!(facts.upstream_warning().is_some(), is_named, "{variables:?}");
        }
    }

    #[test]
    fn caches_move_only_if_their_folder_is_read_only() {
        let mut environment = BTreeMap::from([("GOCACHE".to_owned(), "/own".to_owned())]);
        let home = Path::new("/home/u");
        move_caches(&mut environment, Path::new("/s"), Some(home), |path| path == home.join(".npm"));
        let expected =
            [("GOCACHE", "/own"), ("PIP_CACHE_DIR", "/s/cache/pip"), ("XDG_CACHE_HOME", "/s/cache/.cache")];
        assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}

//! The sandbox of a session. Nothing is made before its first confined command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use whimbrel_config::settings::SandboxSettings;
use whimbrel_process::{CommandSpec, ConfinedCommand, ConfinedStdin, SandboxRequest};
use whimbrel_sandbox::Policy;
use whimbrel_sandbox::covers::journal_folder;
pub use whimbrel_sandbox::ladder::can_open_single_sockets;
use whimbrel_sandbox::plan::MountPlan;
use whimbrel_sandbox::policy::{LoopbackScope, NestedNamespaces, Network, ProcView, UnixSockets};
use whimbrel_sandbox::proxy::{Approval, HostApproval, HostProxy, Proxy, ProxyRules, Route, Upstream};
use whimbrel_sandbox::session::{LeftBehind, Session};
use whimbrel_sandbox::violations::{Violation, search_output};

use super::report::{ViolationReport, remove_ignored};
use super::{CommandStdin, PolicyFacts, SandboxProbe, SandboxTier, file_rules, host_rules};

/// The sandbox of a session.
#[derive(Default)]
pub struct SessionSandbox {
    probe: Arc<SandboxProbe>,
    active: Mutex<Option<Active>>,
    approval: SharedApproval,
}

impl std::fmt::Debug for SessionSandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionSandbox").finish_non_exhaustive()
    }
}

/// What is asked about hosts on no list. The session owns it.
type SharedApproval = Arc<Mutex<Option<Weak<dyn HostApproval>>>>;

/// What the first confined command has started.
struct Active {
    session: Session,
    proxy: Arc<Proxy>,
    scratch: PathBuf,
}

/// A command that is ready to start.
#[derive(Debug)]
pub struct Prepared {
    pub command: ConfinedCommand,
    pub run: ConfinedRun,
}

/// A confined command from its start to its end.
#[derive(Debug)]
pub struct ConfinedRun {
    id: String,
    text: String,
    directory: PathBuf,
    plan: Option<MountPlan>,
    sockets: UnixSockets,
    left_behind: LeftBehind,
    proxy: Arc<Proxy>,
    settings: Arc<SandboxSettings>,
}

impl ConfinedRun {
    /// Reports what was refused, after the end of the command.
    pub fn finish(self, output: &str) -> ViolationReport {
        let mut violations: Vec<Violation> =
            self.proxy.take_refusals(&self.id).into_iter().map(Violation::Network).collect();
        violations.extend(self.left_behind.take().into_iter().map(Violation::from));
        if let Some(plan) = &self.plan {
            violations.extend(search_output(output, &self.directory, plan, &self.sockets));
        }
        remove_ignored(&mut violations, &self.text, &self.settings.ignored_violations);
        ViolationReport::new(violations, self.settings.allow_unsandboxed_commands)
    }
}

impl SessionSandbox {
    pub fn new(probe: Arc<SandboxProbe>) -> Self {
        Self { probe, ..Self::default() }
    }

    /// Returns the tier in which commands of a session with these settings run.
    pub fn find_tier(&self, settings: &SandboxSettings) -> Result<SandboxTier, String> {
        self.probe.find_tier(settings)
    }

    /// Sets what is asked about hosts on no list.
    pub fn set_approval(&self, approval: Weak<dyn HostApproval>) {
        *self.approval.lock().unwrap_or_else(PoisonError::into_inner) = Some(approval);
    }

    /// Folder for temporary files of the session's commands. Accesses the disk.
    pub fn scratch(&self, facts: &PolicyFacts) -> Result<PathBuf, String> {
        let mut active = self.lock();
        Ok(self.activate(&mut active, facts)?.scratch.clone())
    }

    /// Prepares a command. Accesses the disk, and must be called on a runtime. `id` names the command in reports.
    pub fn prepare(
        &self,
        facts: &PolicyFacts,
        spec: &mut CommandSpec,
        id: &str,
        stdin: CommandStdin,
    ) -> Result<Prepared, String> {
        // Settings can change during the session.
        if let Some(error) = facts.settings.errors.first() {
            return Err(error.clone());
        }
        let mut active = self.lock();
        let active = self.activate(&mut active, facts)?;
        active.proxy.set_lists(host_rules::build_lists(facts)?);
        active.proxy.set_route(build_route(facts));
        active.session.set_sandbox(self.find_tier(&facts.settings)?.sandbox);
        super::clean_environment(&mut spec.environment, &facts.settings);
        let policy = build_policy(facts, &active.scratch);
        let roots = writable_roots(&policy);
        super::move_caches(&mut spec.environment, &active.scratch, facts.home().as_deref(), |path| {
            roots.iter().any(|root| path.starts_with(root))
        });
        let stdin = match stdin {
            CommandStdin::Empty => ConfinedStdin::Empty,
            CommandStdin::Piped => ConfinedStdin::Piped,
        };
        let mut request = SandboxRequest::new(spec, id, stdin)
            .map_err(|error| format!("the command is unusable: {error}"))?;
        let prepared =
            active.session.prepare(&policy, request.take_spec()).map_err(|error| error.to_string())?;
        let run = ConfinedRun {
            id: id.to_owned(),
            text: spec.command.clone(),
            directory: spec.cwd.clone(),
            plan: prepared.plan.clone(),
            sockets: policy.unix_sockets,
            left_behind: prepared.left_behind.clone(),
            proxy: Arc::clone(&active.proxy),
            settings: Arc::clone(&facts.settings),
        };
        Ok(Prepared { command: request.into_command(prepared), run })
    }

    /// Removes the covers until the next command, unless a command runs. Accesses the disk.
    pub fn uncover(&self) {
        if let Some(active) = self.lock().as_mut() {
            // What stays is removed at the end of the session, or by the next one.
            let _ = active.session.uncover();
        }
    }

    /// Returns whether the entry at a real path keeps a missing name from being created. Accesses the disk.
    pub fn has_cover(&self, path: &Path) -> bool {
        self.lock().as_ref().is_some_and(|active| active.session.has_cover(path))
    }

    /// Removes covers and temporary files. The commands have ended. Accesses the disk.
    pub fn end(&self) {
        drop(self.lock().take());
    }

    fn activate<'a>(
        &self,
        active: &'a mut Option<Active>,
        facts: &PolicyFacts,
    ) -> Result<&'a mut Active, String> {
        match active {
            Some(active) => Ok(active),
            none => Ok(none.insert(self.start(facts)?)),
        }
    }

    fn start(&self, facts: &PolicyFacts) -> Result<Active, String> {
        let tier = self.find_tier(&facts.settings)?;
        let variable = |name: &str| facts.environment.get(name).map(String::as_str);
        let journals = journal_folder(variable).ok_or("HOME is not set")?;
        let rules = ProxyRules {
            lists: host_rules::build_lists(facts)?,
            approval: Some(Arc::new(LateApproval(Arc::clone(&self.approval)))),
            route: build_route(facts),
        };
        let proxy = Proxy::new(rules).map_err(|error| format!("the proxy cannot be made: {error}"))?;
        let mut session = Session::new(tier.sandbox, journals).with_proxy(Arc::clone(&proxy));
        let scratch = session
            .make_scratch(&facts.temp_dir())
            .map_err(|error| format!("the folder for temporary files cannot be made: {error}"))?;
        Ok(Active { session, proxy, scratch })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Active>> {
        // A panic leaves no half-made value: it is inserted whole.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked about hosts, once the session has set it.
struct LateApproval(SharedApproval);

#[async_trait]
impl HostApproval for LateApproval {
    async fn approve(&self, host: &str, port: u16) -> Approval {
        let approval = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade);
        match approval {
            Some(approval) => approval.approve(host, port).await,
            None => Approval::Refuse,
        }
    }
}

/// How connections leave this machine, by the settings and the engine's own proxy.
fn build_route(facts: &PolicyFacts) -> Route {
    let network = &facts.settings.network;
    let host_proxy = HostProxy { http: network.http_proxy_port, socks: network.socks_proxy_port };
    Route {
        upstream: facts.upstream_proxy().and_then(|(_, url)| Upstream::parse(url)),
        host_proxy: (host_proxy.http.is_some() || host_proxy.socks.is_some()).then_some(host_proxy),
    }
}

fn build_policy(facts: &PolicyFacts, scratch: &Path) -> Policy {
    let settings = &facts.settings;
    let scope = if settings.network.local_binding { LoopbackScope::Session } else { LoopbackScope::Command };
    let sockets: Vec<PathBuf> =
        settings.network.unix_sockets.iter().filter_map(|path| facts.expand(&path.text)).collect();
    Policy {
        files: file_rules::build_file_layer(facts),
        network: Network::Proxied(scope),
        unix_sockets: if settings.network.all_unix_sockets {
            UnixSockets::All
        } else if !sockets.is_empty() && can_open_single_sockets() {
            UnixSockets::Paths(sockets)
        } else {
            UnixSockets::Closed
        },
        namespaces: match settings.allow_nested_namespaces {
            true => NestedNamespaces::Allowed,
            false => NestedNamespaces::Refused,
        },
        proc_view: if settings.allow_weaker_tiers { ProcView::MachineIfRefused } else { ProcView::Own },
        ..Policy::new(facts.root.clone(), scratch)
    }
}

fn writable_roots(policy: &Policy) -> Vec<PathBuf> {
    use whimbrel_sandbox::policy::FileLayer;
    match &policy.files {
        FileLayer::Open => vec!["/".into()],
        FileLayer::Confined(rules) => {
            let roots = rules.allow_write.iter().chain(&rules.work_directories);
            roots.chain([&policy.working_directory]).cloned().collect()
        }
    }
}

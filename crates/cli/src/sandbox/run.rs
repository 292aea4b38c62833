//! `whimbrel sandbox run`: one command with a policy of the command line.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_config::key_variables::HiddenVariables;
use whimbrel_config::settings::{config_dir, credential_files};
use whimbrel_sandbox::Policy;
use whimbrel_sandbox::child::RunError;
use whimbrel_sandbox::covers;
use whimbrel_sandbox::ladder::{Sandbox, Tier, TierChoice, find_bwrap, probe};
use whimbrel_sandbox::launcher::SETUP_FAILED;
use whimbrel_sandbox::policy::{
    FileLayer, FileRules, LoopbackScope, NestedNamespaces, Network, PathRule, ProcView, UnixSockets,
};
use whimbrel_sandbox::program::LauncherProgram;
use whimbrel_sandbox::proxy::domains::{DomainLists, DomainPattern, UnlistedHosts};
use whimbrel_sandbox::proxy::{Proxy, ProxyRules, Route, Upstream};
use whimbrel_sandbox::session::{CommandSpec, Session, find_program};
use whimbrel_sandbox::violations::{Violation, render_report};

use super::command::RunArguments;
use crate::environment::Env;
use crate::stdio::{print_note, report_error};

/// Name of the command in the reports of the proxy.
const COMMAND_ID: &str = "command";

/// Runs the command and returns its exit code.
pub(super) fn run(arguments: RunArguments, env: &Env) -> i32 {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("Cannot start the runtime: {error}."))
        .and_then(|runtime| runtime.block_on(execute(arguments, env)));
    outcome.unwrap_or_else(|text| {
        report_error(&text);
        SETUP_FAILED
    })
}

async fn execute(arguments: RunArguments, env: &Env) -> Result<i32, String> {
    let directory =
        std::env::current_dir().map_err(|error| format!("Cannot find this directory: {error}."))?;
    let sandbox = choose_tier(&arguments)?;
    let proxy = make_proxy(&arguments, env)?;
    let mut session = Session::new(sandbox, journal_folder(env)?);
    // Noted in a journal: if this process is killed, the next one removes it.
    let scratch = session
        .make_scratch(&std::env::temp_dir())
        .map_err(|error| format!("Cannot make a temporary directory: {error}."))?;
    let policy = make_policy(&arguments, env, &directory, &scratch);
    if let Some(proxy) = &proxy {
        session = session.with_proxy(Arc::clone(proxy));
    }
    let spec = make_spec(&arguments.command, env, directory)?;
    let prepared = session.prepare(&policy, spec).map_err(|error| format!("{error}."))?;
    let left_behind = prepared.left_behind.clone();
    let mut child = prepared.spawn().map_err(|error| format!("Cannot start the launcher: {error}."))?;
    let ended = child.wait().await;
    let refusals = proxy.iter().flat_map(|proxy| proxy.take_refusals(COMMAND_ID)).map(Violation::Network);
    let violations: Vec<Violation> =
        refusals.chain(left_behind.take().into_iter().map(Violation::from)).collect();
    if let Some(report) = render_report(&violations, "Allow a host with --allow-host.") {
        print_note(&report);
    }
    match ended {
        Ok(status) => Ok(status.shell_code()),
        Err(error @ (RunError::Layer(_) | RunError::Killed | RunError::Io(_))) => Err(format!("{error}.")),
    }
}

fn choose_tier(arguments: &RunArguments) -> Result<Sandbox, String> {
    let choice = match arguments.tier.as_deref() {
        None => TierChoice::Best,
        Some(name) => {
            let tier = Tier::ALL.into_iter().find(|tier| tier.name() == name);
            let names = Tier::ALL.map(Tier::name).join(", ");
            TierChoice::Only(tier.ok_or_else(|| format!("{name:?} is no tier. Choose one of {names}."))?)
        }
    };
    let launcher = LauncherProgram::this_program()
        .map_err(|error| format!("Cannot find the file of this program: {error}."))?;
    probe(&launcher, find_bwrap().as_deref(), choice).map_err(|error| error.to_string())
}

fn make_policy(arguments: &RunArguments, env: &Env, directory: &Path, scratch: &Path) -> Policy {
    let absolute = |path: &String| directory.join(path);
    let rule = |path: &String| PathRule::parse(&directory.join(path).to_string_lossy());
    let rules = FileRules {
        allow_write: arguments.write.iter().map(absolute).collect(),
        deny_write: arguments.deny_write.iter().map(rule).collect(),
        deny_read: arguments.deny_read.iter().map(rule).collect(),
        allow_read: arguments.allow_read.iter().map(absolute).collect(),
        hidden: config_dir(env).iter().flat_map(|dir| credential_files(dir)).collect(),
        ..FileRules::default()
    };
    let has_hosts = !arguments.allow_hosts.is_empty();
    Policy {
        files: FileLayer::Confined(rules),
        network: if has_hosts { Network::Proxied(LoopbackScope::Command) } else { Network::Isolated },
        unix_sockets: if arguments.local_sockets { UnixSockets::All } else { UnixSockets::Closed },
        namespaces: if arguments.nested_namespaces {
            NestedNamespaces::Allowed
        } else {
            NestedNamespaces::Refused
        },
        // The tier with the machine's processes is used only if it is named.
        proc_view: ProcView::MachineIfRefused,
        ..Policy::new(directory, scratch)
    }
}

fn make_proxy(arguments: &RunArguments, env: &Env) -> Result<Option<Arc<Proxy>>, String> {
    if arguments.allow_hosts.is_empty() {
        return Ok(None);
    }
    let read = |entries: &[String], parse: fn(&str) -> Result<DomainPattern, _>| {
        entries
            .iter()
            .map(|entry| parse(entry))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{error}."))
    };
    let lists = DomainLists {
        allowed: read(&arguments.allow_hosts, DomainPattern::parse_allowed)?,
        denied: read(&arguments.deny_hosts, DomainPattern::parse_denied)?,
        unlisted: UnlistedHosts::Refuse,
    };
    let upstream = ["HTTPS_PROXY", "https_proxy"].iter().find_map(|name| env.get(*name)).map(|url| {
        Upstream::parse(url)
            .ok_or_else(|| format!("The proxy {url:?} of this machine is not supported: no http:// URL."))
    });
    let proxy = Proxy::new(ProxyRules {
        lists,
        approval: None,
        route: Route { upstream: upstream.transpose()?, host_proxy: None },
    });
    proxy.map(Some).map_err(|error| format!("Cannot make the proxy: {error}."))
}

fn make_spec(command: &[String], env: &Env, directory: PathBuf) -> Result<CommandSpec, String> {
    let (name, arguments) = command.split_first().ok_or("The command is missing.")?;
    let search_path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let program = find_program(OsStr::new(name), OsStr::new(search_path))
        .ok_or_else(|| format!("{name}: command not found in PATH."))?;
    let mut variables = env.clone();
    HiddenVariables::new(&[], env).remove_from(&mut variables);
    let input = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| format!("Cannot pass the standard input on: {error}."))?;
    Ok(CommandSpec {
        program,
        arguments: arguments.iter().map(Into::into).collect(),
        environment: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        directory,
        id: COMMAND_ID.into(),
        input: Some(Arc::new(input)),
    })
}

/// Returns the folder in which sessions note the covers that they make.
fn journal_folder(env: &Env) -> Result<PathBuf, String> {
    covers::journal_folder(|name| env.get(name).map(String::as_str)).ok_or_else(|| "HOME is not set.".into())
}

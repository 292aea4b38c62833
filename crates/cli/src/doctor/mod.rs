//! `whimbrel doctor`: what is set up, and what is wrong with it. Nothing is changed, and no server or model is called.
//!
//! Modules: [`checks`].

mod checks;

use serde_json::{Value, json};
use whimbrel_engine::SessionRequest;
use whimbrel_engine::setup::Setup;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::options::Options;

use crate::arg_list::ListFormat;
use crate::credentials::find_credentials;
use crate::environment::{Env, resolve_home};
use crate::exit_code::FAILURE;
use crate::flags::{InspectArgs, parse_inspect_args};
use crate::serve_session::PreparedSession;
use crate::stdio::{self, print_note, report_error};
use crate::terminal_ui::{LineBreaks, sanitize};
use checks::{Finding, Status};

const HELP_PAGE: &str = "\
whimbrel doctor: check the setup.

  whimbrel doctor [--json] [FLAGS]
      show version, model, source of the key, settings files, MCP server
      configurations, configuration directory and programs, with what is wrong.
      The exit code is 1 if a session would not work. FLAGS are those of a
      session, such as --model and --settings.
";

/// Help page of `whimbrel doctor`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Runs the checks and returns the exit code.
pub(crate) fn main(argv: &[String], env: Env) -> i32 {
    match execute(argv, env) {
        Ok((page, code)) => match stdio::print(&page) {
            Ok(()) => code,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn execute(argv: &[String], mut env: Env) -> Result<(String, i32), String> {
    let parsed = parse_inspect_args("doctor", argv, &|path| std::fs::read_to_string(path))?;
    let Some(InspectArgs { options, format, warnings }) = parsed else { return Ok((HELP_PAGE.into(), 0)) };
    warnings.iter().for_each(|warning| print_note(warning));
    resolve_home(&mut env);
    let findings = run_checks(options, &env);
    let is_ok = !findings.iter().any(|finding| finding.status == Status::Error);
    let page = match format {
        ListFormat::Text => render_text(&findings),
        ListFormat::Json => format!("{:#}\n", render_json(&findings, is_ok)),
    };
    Ok((page, if is_ok { 0 } else { FAILURE }))
}

fn run_checks(options: Options, env: &Env) -> Vec<Finding> {
    let settings = SessionRequest::new(options.clone(), env.clone()).inspect_settings();
    let mut session = PreparedSession::new(options, env.clone());
    // Invalid settings are reported by the setup below; the variables of valid ones count.
    let _ = session.request.read_settings();
    let credentials = find_credentials(&session, env);
    let mut findings = vec![checks::check_version()];
    findings.extend(checks::check_model(&credentials, &session.request.env));
    findings.extend(checks::check_settings(&settings));
    findings.push(checks::check_config_dir(&session.request.env));
    let env = session.request.env.clone();
    let setup = Setup::resolve(&session.engine, session.request);
    if let Ok(setup) = &setup {
        findings.extend(checks::check_servers(setup, &env));
    }
    findings.extend(checks::check_programs(&env));
    findings.extend(checks::check_setup(&setup));
    findings
}

fn render_text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let Finding { name, status, detail } = finding;
        let mark = match status {
            Status::Ok => "✓",
            Status::Warning => "!",
            Status::Error => "✗",
        };
        sanitize(&format!("{mark} {name}: {detail}"), LineBreaks::Replace) + "\n"
    };
    let count = |status: Status| findings.iter().filter(|finding| finding.status == status).count();
    let (errors, warnings) = (count(Status::Error), count(Status::Warning));
    let page: String = findings.iter().map(line).collect();
    match (errors, warnings) {
        (0, 0) => format!("{page}\nNo problems found.\n"),
        _ => format!("{page}\nErrors: {errors}, warnings: {warnings}.\n"),
    }
}

fn render_json(findings: &[Finding], is_ok: bool) -> Value {
    let render = |finding: &Finding| {
        let status = match finding.status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Error => "error",
        };
        json!({"name": finding.name, "status": status, "detail": finding.detail})
    };
    json!({
        "ok": is_ok,
        "version": env!("CARGO_PKG_VERSION"),
        "protocolVersion": PROTOCOL_VERSION,
        "checks": findings.iter().map(render).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_and_kept_on_one_line() {
        let finding = |status| Finding { name: "a".into(), status, detail: "b\nc".into() };
        assert_eq!(render_text(&[finding(Status::Ok)]), "✓ a: b c\n\nNo problems found.\n");
        let broken = [finding(Status::Error), finding(Status::Warning)];
        assert_eq!(render_text(&broken), "✗ a: b c\n! a: b c\n\nErrors: 1, warnings: 1.\n");
        let json = render_json(&broken, false);
        assert_eq!((&json["ok"], &json["checks"][1]["status"]), (&json!(false), &json!("warning")));
    }
}

//! Agent files (`--agent-file`): YAML with a system prompt, a list of tools and subagents. A file can extend another one,
//! or the default agent.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::command_line::UsageError;

/// Maximum number of files that extend each other.
const MAX_EXTENDED_FILES: usize = 16;
/// The value of `extend` for the agent that is built in.
const DEFAULT_AGENT: &str = "default";
/// Python modules of the tools that come with kimi-cli.
const TOOL_MODULES: &str = "kimi_cli.tools.";
/// Syntax of Jinja that prompts may contain and that is not supported.
const JINJA_MARKS: [&str; 3] = ["{%", "{{", "{#"];

/// An agent: what the file and the files that it extends say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentFile {
    /// `None`: the prompt of the default agent.
    pub(crate) system_prompt: Option<PromptTemplate>,
    /// Values for the system prompt. With the prompt of the default agent, `ROLE_ADDITIONAL` is a text to add to it.
    pub(crate) system_prompt_args: BTreeMap<String, String>,
    /// Names of built-in tools; `None`: those of the default agent.
    pub(crate) tools: Option<Vec<String>>,
    /// Names to take away from `tools`.
    pub(crate) exclude_tools: Vec<String>,
    /// Subagents by name; `None`: those of the default agent. A subagent has no subagents of its own, whatever its file
    /// says, so that its file can extend that of the main agent.
    pub(crate) subagents: Option<BTreeMap<String, SubagentFile>>,
}

/// A system prompt with `${NAME}` in place of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptTemplate {
    /// The file that it comes from, for error messages.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubagentFile {
    /// Tells the model when to use it.
    pub(crate) description: String,
    pub(crate) agent: AgentFile,
}

/// Why an agent file cannot be used. The program does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgentFileError {
    #[error("cannot read {}: {cause}. Name an existing file in UTF-8.", .path.display())]
    Unreadable { path: PathBuf, cause: String },
    #[error("{}: {cause}. Fix the file.", .path.display())]
    Invalid { path: PathBuf, cause: String },
    #[error("{}: `{key}` is missing. Set it, or write `extend: default`.", .path.display())]
    MissingKey { path: PathBuf, key: &'static str },
    #[error(
        "{}: `{tool}` is a tool in Python, which whimbrel cannot load. Remove it, or let the host offer it as an \
         external tool.",
        .path.display()
    )]
    PythonTool { path: PathBuf, tool: String },
    #[error("{} extends itself through other files. Remove one `extend`.", .path.display())]
    Cycle { path: PathBuf },
    #[error("{} is extended by more than {MAX_EXTENDED_FILES} files. Use fewer files.", .path.display())]
    TooManyFiles { path: PathBuf },
    #[error("{}: {error}", .path.display())]
    Template { path: PathBuf, error: TemplateError },
}

/// Why the values cannot be put into a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("`${{{name}}}` is not a known variable. Set it in system_prompt_args, or use one of: {known}.")]
    UnknownVariable { name: String, known: String },
    #[error("a variable has no closing brace. Write ${{NAME}}.")]
    Unclosed,
    #[error("`{0}` is Jinja syntax, which whimbrel does not support. Use only ${{NAME}}.")]
    Jinja(&'static str),
}

/// Reads an agent file, those that it extends, and those of its subagents.
pub(crate) fn read(path: &Path) -> Result<AgentFile, AgentFileError> {
    read_with(path, &|path| fs::read_to_string(path))
}

/// Replaces each `${NAME}` by its value. Values are inserted as they are.
pub(crate) fn render(template: &str, variables: &BTreeMap<String, String>) -> Result<String, TemplateError> {
    if let Some(mark) = JINJA_MARKS.into_iter().find(|mark| template.contains(mark)) {
        return Err(TemplateError::Jinja(mark));
    }
    let mut rendered = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
        let value = variables.get(name.trim()).ok_or_else(|| TemplateError::UnknownVariable {
            name: name.trim().to_owned(),
            known: variables.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })?;
        rendered.push_str(before);
        rendered.push_str(value);
        rest = after;
    }
    rendered.push_str(rest);
    Ok(rendered)
}

impl AgentFile {
    /// Returns the system prompt with these variables and those of the file, which win; `None` for the prompt of the
    /// default agent.
    pub(crate) fn render_prompt(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<Option<String>, AgentFileError> {
        let Some(template) = &self.system_prompt else { return Ok(None) };
        let mut all = variables.clone();
        all.extend(self.system_prompt_args.clone());
        let rendered = render(&template.text, &all);
        rendered.map(Some).map_err(|error| AgentFileError::Template { path: template.path.clone(), error })
    }
}

impl From<AgentFileError> for UsageError {
    fn from(error: AgentFileError) -> Self {
        Self::new(error.to_string())
    }
}

/// Reads files from a path to their text.
type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

#[derive(Deserialize)]
struct Document {
    version: Option<Value>,
    agent: AgentSpec,
}

/// What one file says. `None` inherits from the file that it extends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct AgentSpec {
    extend: Option<String>,
    system_prompt_path: Option<PathBuf>,
    system_prompt_args: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    tools: Option<Vec<String>>,
    /// In place of `tools`.
    allowed_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "null_is_empty")]
    exclude_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "null_is_empty")]
    subagents: Option<BTreeMap<String, SubagentSpec>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SubagentSpec {
    path: PathBuf,
    description: String,
}

fn read_with(path: &Path, read: ReadFile<'_>) -> Result<AgentFile, AgentFileError> {
    let path = &normalize(path);
    let spec = resolve_extends(path, read)?;
    let subagents = spec.subagents.clone().map(|subagents| {
        let read_subagent = |(name, subagent): (String, SubagentSpec)| {
            let agent = to_agent(&subagent.path, resolve_extends(&subagent.path, read)?, read)?;
            Ok((name, SubagentFile { description: subagent.description, agent }))
        };
        subagents.into_iter().map(read_subagent).collect::<Result<_, AgentFileError>>()
    });
    Ok(AgentFile { subagents: subagents.transpose()?, ..to_agent(path, spec, read)? })
}

/// Reads a file and lays it over the files that it extends. Paths in the result do not depend on the file.
fn resolve_extends(path: &Path, read: ReadFile<'_>) -> Result<AgentSpec, AgentFileError> {
    let mut spec = read_spec(path, read)?;
    let mut file = path.to_owned();
    let mut files = vec![file.clone()];
    while let Some(base) = spec.extend.take() {
        if base == DEFAULT_AGENT {
            return Ok(lay_over(default_agent(), spec));
        }
        file = resolve(&file, Path::new(&base));
        if files.contains(&file) {
            return Err(AgentFileError::Cycle { path: file });
        }
        if files.len() == MAX_EXTENDED_FILES {
            return Err(AgentFileError::TooManyFiles { path: file });
        }
        spec = lay_over(read_spec(&file, read)?, spec);
        files.push(file.clone());
    }
    if spec.system_prompt_path.is_none() {
        return Err(AgentFileError::MissingKey { path: path.to_owned(), key: "system_prompt_path" });
    }
    if spec.tools.is_none() && spec.allowed_tools.is_none() {
        return Err(AgentFileError::MissingKey { path: path.to_owned(), key: "tools" });
    }
    Ok(AgentSpec { subagents: Some(spec.subagents.unwrap_or_default()), ..spec })
}

/// What a file inherits with `extend: default`. The rest is left to the engine.
fn default_agent() -> AgentSpec {
    AgentSpec {
        system_prompt_args: BTreeMap::from([("ROLE_ADDITIONAL".to_owned(), String::new())]),
        ..AgentSpec::default()
    }
}

fn lay_over(base: AgentSpec, spec: AgentSpec) -> AgentSpec {
    let mut system_prompt_args = base.system_prompt_args;
    system_prompt_args.extend(spec.system_prompt_args);
    AgentSpec {
        extend: base.extend,
        system_prompt_path: spec.system_prompt_path.or(base.system_prompt_path),
        system_prompt_args,
        tools: spec.tools.or(base.tools),
        allowed_tools: spec.allowed_tools.or(base.allowed_tools),
        exclude_tools: spec.exclude_tools.or(base.exclude_tools),
        subagents: spec.subagents.or(base.subagents),
    }
}

/// Parses a file, and makes its paths independent of it.
fn read_spec(path: &Path, read: ReadFile<'_>) -> Result<AgentSpec, AgentFileError> {
    let invalid = |cause: String| AgentFileError::Invalid { path: path.to_owned(), cause };
    let document: Document = serde_saphyr::from_str(&read_text(path, read)?).map_err(|error| {
        let cause = error.without_snippet().to_string();
        let line = error.location().map_or(1, |location| location.line());
        invalid(format!("line {line}: {}", cause.lines().next().unwrap_or_default()))
    })?;
    match &document.version {
        None => {}
        Some(version) if *version == 1 || *version == "1" => {}
        Some(version) => return Err(invalid(format!("version {version} is not supported, only version 1"))),
    }
    let mut spec = document.agent;
    spec.system_prompt_path = spec.system_prompt_path.map(|prompt| resolve(path, &prompt));
    for subagent in spec.subagents.iter_mut().flat_map(BTreeMap::values_mut) {
        subagent.path = resolve(path, &subagent.path);
    }
    Ok(spec)
}

fn to_agent(path: &Path, spec: AgentSpec, read: ReadFile<'_>) -> Result<AgentFile, AgentFileError> {
    let read_prompt = |path: PathBuf| {
        let text = read_text(&path, read)?.trim().to_owned();
        Ok(PromptTemplate { path, text })
    };
    let tool_name = |tool: &String| match tool.rsplit_once(':') {
        Some((module, _)) if !module.starts_with(TOOL_MODULES) => {
            Err(AgentFileError::PythonTool { path: path.to_owned(), tool: tool.clone() })
        }
        _ => Ok(class_name(tool)),
    };
    let tools = spec.allowed_tools.or(spec.tools);
    Ok(AgentFile {
        system_prompt: spec.system_prompt_path.map(read_prompt).transpose()?,
        system_prompt_args: spec.system_prompt_args,
        tools: tools.map(|tools| tools.iter().map(tool_name).collect()).transpose()?,
        exclude_tools: spec.exclude_tools.iter().flatten().map(|tool| class_name(tool)).collect(),
        subagents: None,
    })
}

/// Returns `Class` of `module:Class`.
fn class_name(tool: &str) -> String {
    tool.rsplit_once(':').map_or(tool, |(_, class)| class).to_owned()
}

fn read_text(path: &Path, read: ReadFile<'_>) -> Result<String, AgentFileError> {
    read(path).map_err(|error| AgentFileError::Unreadable { path: path.to_owned(), cause: error.to_string() })
}

/// Returns the place of a path that a file names.
fn resolve(file: &Path, path: &Path) -> PathBuf {
    normalize(&file.parent().unwrap_or(Path::new("")).join(path))
}

/// Removes `.` and `..` where it can, so that equal paths of a cycle are recognized. A cycle through symbolic links ends at
/// [`MAX_EXTENDED_FILES`].
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        let can_go_up = matches!(normal.components().next_back(), Some(Component::Normal(_)));
        match component {
            Component::CurDir => {}
            Component::ParentDir if can_go_up => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Reads null as an empty value, so that it differs from a missing one.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Some(Option::deserialize(deserializer)?.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Files<'a> = &'a [(&'a str, &'a str)];

    fn read_from(files: Files<'_>, path: &str) -> Result<AgentFile, AgentFileError> {
        read_with(Path::new(path), &|path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    fn strings<const N: usize>(values: [&str; N]) -> Vec<String> {
        values.map(str::to_owned).into()
    }

    fn args<const N: usize>(values: [(&str, &str); N]) -> BTreeMap<String, String> {
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn template(path: &str, text: &str) -> Option<PromptTemplate> {
        Some(PromptTemplate { path: path.into(), text: text.into() })
    }

    const MAIN: (&str, &str) = (
        "/a/main.yaml",
        r#"
version: 1
agent:
  name: main
  system_prompt_path: ./prompts/main.md
  system_prompt_args: {WHO: "the main agent", WHAT: code}
  tools: ["kimi_cli.tools.shell:Shell", "kimi_cli.tools.file:ReadFile"]
  subagents:
    helper: {path: sub/../helper.yaml, description: Helps.}
  unknown: true
"#,
    );
    const PROMPT: (&str, &str) = ("/a/prompts/main.md", "\nYou are ${WHO}.\n");

    #[test]
    fn file_is_read_with_its_subagents() {
        let helper = r#"
agent:
  extend: ./main.yaml
  system_prompt_args: {WHO: a helper}
  allowed_tools: ["kimi_cli.tools.file:ReadFile"]
  exclude_tools: ["kimi_cli.tools.agent:Agent"]
"#;
        let agent = read_from(&[MAIN, PROMPT, ("/a/helper.yaml", helper)], "/a/x/../main.yaml").unwrap();
        let expected = AgentFile {
            system_prompt: template("/a/prompts/main.md", "You are ${WHO}."),
            system_prompt_args: args([("WHO", "the main agent"), ("WHAT", "code")]),
            tools: Some(strings(["Shell", "ReadFile"])),
            exclude_tools: Vec::new(),
            subagents: Some(BTreeMap::from([(
                "helper".into(),
                SubagentFile {
                    description: "Helps.".into(),
                    agent: AgentFile {
                        system_prompt: template("/a/prompts/main.md", "You are ${WHO}."),
                        system_prompt_args: args([("WHO", "a helper"), ("WHAT", "code")]),
                        tools: Some(strings(["ReadFile"])),
                        exclude_tools: strings(["Agent"]),
                        subagents: None,
                    },
                },
            )])),
        };
        assert_eq!(agent, expected);
        assert_eq!(
            agent.render_prompt(&args([("WHO", "lost")])).unwrap().unwrap(),
            "You are the main agent."
        );
    }

    #[test]
    fn default_agent_is_extended() {
        let role = |text: &str| args([("ROLE_ADDITIONAL", text)]);
        let none = Some(BTreeMap::new());
        let table = [
            ("nothing else", "", AgentFile { system_prompt_args: role(""), ..AgentFile::default() }),
            (
                "a text for the prompt",
                "system_prompt_args: {ROLE_ADDITIONAL: Be brief.}",
                AgentFile { system_prompt_args: role("Be brief."), ..AgentFile::default() },
            ),
            (
                "fewer tools, by module and by name",
                "exclude_tools: ['kimi_cli.tools.web:SearchWeb', FetchURL]",
                AgentFile {
                    system_prompt_args: role(""),
                    exclude_tools: strings(["SearchWeb", "FetchURL"]),
                    ..AgentFile::default()
                },
            ),
            (
                "no tools and no subagents",
                "tools:\n  subagents:",
                AgentFile {
                    system_prompt_args: role(""),
                    tools: Some(Vec::new()),
                    subagents: none,
                    ..AgentFile::default()
                },
            ),
        ];
        for (name, more, expected) in table {
            let text = format!("version: '1'\nagent:\n  extend: default\n  {more}\n");
            let agent = read_from(&[("/a.yaml", &text)], "/a.yaml").unwrap();
            assert_eq!(agent, expected, "{name}");
            assert_eq!(agent.render_prompt(&BTreeMap::new()), Ok(None), "{name}");
        }
        let base = ("/base.yaml", "agent: {extend: default, exclude_tools: [A]}");
        let agent = read_from(&[base, ("/a.yaml", "agent: {extend: ./base.yaml}")], "/a.yaml").unwrap();
        assert_eq!((agent.exclude_tools, agent.tools), (strings(["A"]), None), "through another file");
    }

    #[test]
    fn unusable_file_is_refused_with_its_name() {
        let table: &[(&str, Files<'_>, &str)] = &[
            ("missing", &[], "cannot read /m.yaml: "),
            ("no YAML", &[("/m.yaml", "agent: [")], "/m.yaml: line "),
            ("no mapping", &[("/m.yaml", "just text")], "/m.yaml: line 1: "),
            ("no agent", &[("/m.yaml", "version: 1")], "missing field `agent`"),
            ("wrong type", &[("/m.yaml", "agent:\n  tools: 7")], "/m.yaml: line 2: "),
            (
                "other version",
                &[("/m.yaml", "version: 2\nagent: {extend: default}")],
                "version 2 is not supported",
            ),
            ("no prompt", &[("/m.yaml", "agent: {tools: []}")], "`system_prompt_path` is missing"),
            ("no tools", &[("/m.yaml", "agent: {system_prompt_path: p}")], "`tools` is missing"),
            (
                "missing prompt",
                &[("/m.yaml", "agent: {system_prompt_path: p, tools: []}")],
                "cannot read /p: ",
            ),
            (
                "tool in Python",
                &[("/m.yaml", "agent: {extend: default, tools: ['my.tools:Mine']}")],
                "`my.tools:Mine` is a tool in Python",
            ),
            ("itself", &[("/m.yaml", "agent: {extend: ./m.yaml}")], "/m.yaml extends itself"),
            (
                "each other",
                &[("/m.yaml", "agent: {extend: n.yaml}"), ("/n.yaml", "agent: {extend: x/../m.yaml}")],
                "/m.yaml extends itself",
            ),
            (
                "missing subagent",
                &[("/m.yaml", "agent: {extend: default, subagents: {s: {path: s.yaml, description: d}}}")],
                "cannot read /s.yaml: ",
            ),
        ];
        for (name, files, expected) in table {
            let text = read_from(files, "/m.yaml").unwrap_err().to_string();
            assert!(text.contains(expected), "{name}: {text}");
        }
    }

    #[test]
    fn chain_of_files_is_bounded() {
        let read = |path: &Path| {
            let number: usize = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
            Ok(format!("agent: {{extend: ./{}.yaml}}", number + 1))
        };
        let path = PathBuf::from(format!("/{MAX_EXTENDED_FILES}.yaml"));
        assert_eq!(read_with(Path::new("/0.yaml"), &read), Err(AgentFileError::TooManyFiles { path }));
    }

    #[test]
    fn file_of_the_disk_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.yaml");
        fs::write(&path, "agent: {extend: default, system_prompt_path: p.md}").unwrap();
        fs::write(dir.path().join("p.md"), "In ${KIMI_WORK_DIR}.").unwrap();
        let prompt = read(&path).unwrap().render_prompt(&args([("KIMI_WORK_DIR", "/w")]));
        assert_eq!(prompt.unwrap().unwrap(), "In /w.");
    }

    #[test]
    fn variables_are_replaced_once() {
        let variables = args([("NOW", "noon"), ("LS", "${NOW} {{ x }}")]);
        let unknown =
            |name: &str| TemplateError::UnknownVariable { name: name.into(), known: "LS, NOW".into() };
        let table = [
            ("no variable", "a $b {c} }", Ok("a $b {c} }")),
            ("variables", "${NOW}, ${ NOW }: ${LS}", Ok("noon, noon: ${NOW} {{ x }}")),
            ("empty", "", Ok("")),
            ("unknown variable", "${NOW} ${HOME}", Err(unknown("HOME"))),
            ("expression", "${NOW|upper}", Err(unknown("NOW|upper"))),
            ("no closing brace", "${NOW", Err(TemplateError::Unclosed)),
            ("statement", "{% include 'x' %}", Err(TemplateError::Jinja("{%"))),
            ("expression of Jinja", "{{ NOW }}", Err(TemplateError::Jinja("{{"))),
            ("comment", "{# x #}", Err(TemplateError::Jinja("{#"))),
        ];
        for (name, template, expected) in table {
            assert_eq!(render(template, &variables), expected.map(str::to_owned), "{name}");
        }
        assert_eq!(
            unknown("HOME").to_string(),
            "`${HOME}` is not a known variable. Set it in system_prompt_args, or use one of: LS, NOW."
        );
    }
}

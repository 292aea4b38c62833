//! Instruction files of subdirectories, loaded when the model accesses a file there.

use std::mem;
use std::path::Path;

use serde_json::Value;
use whimbrel_os::files;

use super::load::InstructionText;
use super::{Instructions, LoadReason, locations, render_files};

impl Instructions {
    /// Notes the path of a tool call that reads or changes a file.
    pub fn watch_call(&mut self, tool: &str, input: &Value) {
        let field = match tool {
            "Read" | "Edit" | "Write" => "file_path",
            "NotebookEdit" => "notebook_path",
            _ => return,
        };
        self.watched_paths.extend(input[field].as_str().map(str::to_owned));
    }

    /// Takes the noted paths, as the model wrote them.
    pub fn take_watched_paths(&mut self) -> Vec<String> {
        mem::take(&mut self.watched_paths)
    }

    /// Loads the instructions of the directories that contain an accessed file. Blocking. Each file is a separate
    /// text, so that one injected in an earlier run is recognized.
    pub fn load_nested(&mut self, file: &Path) -> Vec<String> {
        let Some(file) = files::real_path(file) else { return Vec::new() };
        let Some(dir) = file.parent().map(Path::to_owned) else { return Vec::new() };
        if !self.visited_dirs.insert(dir) {
            return Vec::new();
        }
        let candidates = locations::nested_files(&self.config_locations, &file);
        let texts = self.load_files(&candidates, LoadReason::Nested, Some(&file)).unwrap_or_default();
        texts.chunks(1).filter_map(render_nested).collect()
    }
}

/// Renders files of subdirectories.
fn render_nested(texts: &[InstructionText]) -> Option<String> {
    let head = "Further instructions, each for the files in and below its directory:";
    render_files(head, texts)
}

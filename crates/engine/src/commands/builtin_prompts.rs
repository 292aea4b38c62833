//! Built-in prompts: commands whose work a model does, such as `/review`. A command file of the same name replaces one.

#[derive(Debug, PartialEq, Eq)]
pub struct BuiltinPrompt {
    /// Name without the slash.
    pub name: &'static str,
    pub description: &'static str,
    pub argument_hint: &'static str,
    text: &'static str,
}

impl BuiltinPrompt {
    /// The text for the model, with what the user wrote after the name.
    pub fn render(&self, arguments: &str) -> String {
        let text = self.text.trim_end();
        match arguments {
            "" => text.to_owned(),
            arguments => format!("{text}\n\nThe user added: {arguments}"),
        }
    }
}

/// All built-in prompts.
pub const BUILTIN_PROMPTS: &[BuiltinPrompt] = &[INIT, PR_COMMENTS, REVIEW, SECURITY_REVIEW];

const INIT: BuiltinPrompt = BuiltinPrompt {
    name: "init",
    description: "Write or improve CLAUDE.md, the project's instructions for agents",
    argument_hint: "[what to mention]",
    text: include_str!("builtin_prompts/init.md"),
};

const PR_COMMENTS: BuiltinPrompt = BuiltinPrompt {
    name: "pr-comments",
    description: "Show the comments on a pull request",
    argument_hint: "[pull request]",
    text: include_str!("builtin_prompts/pr-comments.md"),
};

const REVIEW: BuiltinPrompt = BuiltinPrompt {
    name: "review",
    description: "Review a pull request, a branch or uncommitted changes",
    argument_hint: "[pull request, branch or path]",
    text: include_str!("builtin_prompts/review.md"),
};

const SECURITY_REVIEW: BuiltinPrompt = BuiltinPrompt {
    name: "security-review",
    description: "Look for vulnerabilities in the changes of this branch",
    argument_hint: "[what to look at]",
    text: include_str!("builtin_prompts/security-review.md"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_follow_the_text() {
        let plain = REVIEW.render("");
        assert!(plain.starts_with("Review a change.") && plain.ends_with("no trivia."), "{plain}");
        assert_eq!(REVIEW.render("12"), format!("{plain}\n\nThe user added: 12"));
    }
}

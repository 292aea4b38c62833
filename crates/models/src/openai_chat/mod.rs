//! The Chat Completions dialect: OpenAI, Kimi, DeepSeek, OpenRouter, Ollama, vLLM, llama.cpp and many others.
//!
//! - `request`: translates a request, pure
//! - `chunk`: parses one chunk of a response leniently; `stream`: chunks to reply events, pure
//! - `error`: decodes errors, pure
//! - `client`: HTTP client

mod chunk;
mod client;
mod error;
mod request;
mod stream;

pub use client::OpenAiChat;

//! The verb that connects ssh with a host through the proxy: stdin and stdout are the connection. ssh starts it inside, as
//! its `ProxyCommand`.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// First argument that makes a program the tunnel; host and port follow.
pub const VERB: &str = "__sandbox-connect";
/// Largest answer of the proxy.
const MAX_ANSWER: usize = 16 << 10;

/// Connects and carries bytes until the host closes.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ! {
    let code = match connect(arguments) {
        Ok(()) => 0,
        Err(text) => {
            // There is nowhere else to say it.
            let _ = writeln!(io::stderr(), "{text}");
            1
        }
    };
    std::process::exit(code)
}

fn connect(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let mut argument = || arguments.next()?.into_string().ok();
    let (Some(host), Some(port)) = (argument(), argument()) else {
        return Err(format!("host and port are missing after {VERB}"));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let proxy = std::env::var("HTTP_PROXY")
        .map_err(|_| "HTTP_PROXY is not set: there is no proxy to connect through")?;
    let proxy = url::Url::parse(&proxy).map_err(|error| format!("HTTP_PROXY is no URL: {error}"))?;
    let failed = |error: io::Error| format!("the proxy cannot be reached: {error}");
    let address = (proxy.host_str().unwrap_or_default(), proxy.port().unwrap_or_default());
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    let credentials =
        STANDARD.encode(format!("{}:{}", proxy.username(), proxy.password().unwrap_or_default()));
    let request = format!(
        "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nProxy-Authorization: Basic {credentials}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    read_answer(&mut stream)?;
    carry(stream).map_err(failed)
}

/// Reads the head of the answer, and the text of a refusal.
fn read_answer(stream: &mut TcpStream) -> Result<(), String> {
    let mut head = Vec::new();
    let mut byte = [0];
    // Byte by byte: what follows belongs to the tunnel.
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_ANSWER {
        stream.read_exact(&mut byte).map_err(|error| format!("the proxy does not answer: {error}"))?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if head.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0_usize).min(MAX_ANSWER)];
    // The status alone must do if the text is cut off.
    let _ = stream.read_exact(&mut body);
    let status = head.lines().next().unwrap_or_default();
    Err(format!("{status}: {}", String::from_utf8_lossy(&body).trim()))
}

fn carry(mut stream: TcpStream) -> io::Result<()> {
    let mut upward = stream.try_clone()?;
    std::thread::spawn(move || {
        // The host sees the end of the input; the other direction goes on.
        let _ = io::copy(&mut io::stdin().lock(), &mut upward);
        let _ = upward.shutdown(Shutdown::Write);
    });
    let mut output = io::stdout().lock();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => {
                output.write_all(&buffer[..length])?;
                output.flush()?;
            }
        }
    }
}

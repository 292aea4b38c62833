//! The network: nothing but the proxy, and the proxy only where the lists allow. Servers of the test are on loopback, whose
//! addresses are refused unless a list names them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use support::{CALL_ID, Output, World, confined_test};
use whimbrel_sandbox::policy::{LoopbackScope, Network};
use whimbrel_sandbox::proxy::domains::{DomainLists, DomainPattern, UnlistedHosts};
use whimbrel_sandbox::proxy::{Approval, HostApproval, HostProxy, Proxy, ProxyRules, Reason, Refusal, Route};

/// An HTTP server that answers every request on a connection with its head, and notes the heads.
struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, noted) = (stream.unwrap(), Arc::clone(&noted));
                std::thread::spawn(move || while answer(&mut stream, &noted).is_some() {});
            }
        });
        Self { address, heads }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(stream: &mut std::net::TcpStream, heads: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let is_upgrade = head.to_lowercase().contains("\r\nupgrade:");
    let answer = if is_upgrade {
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\nUPGRADED".to_owned()
    } else {
        let size =
            head.split("size=").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(9);
        format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\nGOOD-PAGE{}", "G".repeat(size - 9))
    };
    heads.lock().unwrap().push(head);
    stream.write_all(answer.as_bytes()).ok()
}

/// A world with a proxy.
struct Net {
    world: World,
    proxy: Arc<Proxy>,
    runtime: tokio::runtime::Runtime,
}

impl Net {
    fn new(
        mut world: World,
        allowed: &[&str],
        denied: &[&str],
        approval: Option<Arc<dyn HostApproval>>,
    ) -> Self {
        let lists = DomainLists {
            allowed: allowed.iter().map(|entry| DomainPattern::parse_allowed(entry).unwrap()).collect(),
            denied: denied.iter().map(|entry| DomainPattern::parse_denied(entry).unwrap()).collect(),
            unlisted: if approval.is_some() { UnlistedHosts::Ask } else { UnlistedHosts::Refuse },
        };
        let proxy = Proxy::new(ProxyRules { lists, approval, route: Route::default() }).unwrap();
        world.policy.network = Network::Proxied(LoopbackScope::Command);
        let session = whimbrel_sandbox::session::Session::new(world.sandbox.clone(), world.path("state"));
        world.session = session.with_proxy(Arc::clone(&proxy));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { world, proxy, runtime }
    }

    /// Lets aborted tasks end, and fails if more are left than expected.
    fn wait_for_tasks(&self, expected: usize) {
        let metrics = self.runtime.metrics();
        self.runtime.block_on(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(metrics.num_alive_tasks(), expected);
    }

    fn run(&mut self, script: &str) -> String {
        let Self { world, runtime, .. } = self;
        let Output { text, .. } = runtime.block_on(async {
            let spec = world.spec(&format!("{script}\necho alive-$((6*7))"));
            let mut prepared = world.session.prepare(&world.policy, spec).unwrap();
            let (mut reader, writer) = std::io::pipe().unwrap();
            prepared.command.stdout(writer.try_clone().unwrap()).stderr(writer);
            let mut child = prepared.spawn().unwrap();
            let output = tokio::task::spawn_blocking(move || {
                let mut text = Vec::new();
                reader.read_to_end(&mut text).unwrap();
                String::from_utf8_lossy(&text).into_owned()
            });
            let status = child.wait().await.unwrap();
            Output { status, text: output.await.unwrap() }
        });
        assert!(text.contains("alive-42"), "the script did not reach its end: {text}");
        text
    }
}

/// A client that speaks to the proxy byte by byte.
const CLIENT: &str = r"
import base64, os, re, socket, struct
m = re.match(r'http://([^@]*)@([^:]+):(\d+)', os.environ['HTTP_PROXY'])
AUTH = b'Proxy-Authorization: Basic ' + base64.b64encode(m.group(1).encode()) + b'\r\n'
def dial():
    s = socket.create_connection((m.group(2), int(m.group(3))), 20); s.settimeout(20); return s
def head(s):
    data = b''
    while b'\r\n\r\n' not in data:
        got = s.recv(1)
        if not got: break
        data += got
    return data.decode('latin1')
def body(s, h):
    n = int(re.search(r'(?i)content-length: *(\d+)', h).group(1)); data = b''
    while len(data) < n: data += s.recv(n - len(data))
    return data.decode('latin1').strip()
def get(target, headers='', s=None, auth=AUTH):
    s = s or dial(); s.sendall(b'GET ' + target.encode('latin1') + b' HTTP/1.1\r\n' + auth + headers.encode() + b'\r\n')
    h = head(s); print('GET', target, h.split(' ')[1:2], body(s, h) if 'ength' in h else h); return s
def connect(target, auth=AUTH):
    s = dial(); s.sendall(b'CONNECT ' + target.encode('latin1') + b' HTTP/1.1\r\nHost: x\r\n' + auth + b'\r\n')
    h = head(s); print('CONNECT', target, h.split(' ')[1:2]); return s
def socks(host, port, verb=1, password=None):
    u, p = m.group(1).split(':'); p = password or p
    s = dial(); s.sendall(b'\x05\x02\x00\x02'); assert s.recv(2) == b'\x05\x02'
    s.sendall(bytes([1, len(u)]) + u.encode() + bytes([len(p)]) + p.encode())
    if s.recv(2) != b'\x01\x00': print('SOCKS', 'password'); return s
    s.sendall(bytes([5, verb, 0, 3, len(host)]) + host + struct.pack('!H', port)); print('SOCKS', host, s.recv(10)[1]); return s
";

confined_test! {
    /// S-17.
    fn nothing_leaves_without_the_proxy(world) {
        let server = Server::start();
        let text = world.run(&format!(
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {0}), 5)'; exec 3<>/dev/tcp/127.0.0.1/{0}
             python3 -c 'import socket; socket.socket(2, 2).sendto(b\"x\", (\"192.0.2.1\", 53))'; cat /proc/net/route | wc -l; ls /sys/class/net
             curl -s --noproxy '*' http://127.0.0.1:{0}/; env | grep -i proxy", server.port()
        ));
        assert!(server.heads().is_empty() && text.contains("Network is unreachable") && !text.contains("GOOD"), "{text}");
    }
}

confined_test! {
    /// S-18, S-20, S-23: every request of a connection is checked, and its `Host` is that of the URL.
    fn allowed_hosts_are_reached_and_others_are_not(world) {
        let server = Server::start();
        let port = server.port();
        let literal = format!("127.0.0.1:{port}");
        let mut net = Net::new(world, &[&literal, "localhost"], &["denied.localhost"], None);
        net.world.put("ws/c.py", &format!("{CLIENT}
s = get('http://127.0.0.1:{port}/a', 'Host: other.test\\r\\nProxy-Connection: keep-alive\\r\\nConnection: x-hop\\r\\nX-Hop: 1\\r\\n')
get('http://evil.test/b', 'Host: 127.0.0.1\\r\\n', s)
get('http://127.0.0.1:{port}/c?size=70000'[:-11], '', s)
get('http://localhost:{port}/name')
get('http://denied.localhost:{port}/')
for bad in ('http://user@127.0.0.1:{port}/', 'https://127.0.0.1:{port}/', '/path', 'http://127.1:{port}/', 'http://0x7f000001:{port}/', 'http://127.0.0.1%2e:{port}/'): get(bad)
s = connect('127.0.0.1:{port}'); s.sendall(b'GET /tunnel HTTP/1.1\\r\\n\\r\\n'); print(head(s).split(' ')[1], body(s, 'Content-Length: 9'))
connect('evil.test:443'); connect('127.0.0.1:1'); connect('127.0.0.1'); connect('evil.test@127.0.0.1:{port}')
socks(b'127.0.0.1', {port}); socks(b'evil.test', 80); socks(b'127.0.0.1', {port}, 2); socks(b'127.1', {port})
"));
        let text = net.run("python3 c.py 2>&1");
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            format!("GET http://127.0.0.1:{port}/a ['200'] GOOD-PAGE"),
            "GET http://evil.test/b ['403'] the sandbox refuses the connection: evil.test:80 is not an allowed host".into(),
            format!("GET http://127.0.0.1:{port}/c ['200'] GOOD-PAGE"),
            format!("GET http://localhost:{port}/name ['200'] GOOD-PAGE"),
            format!("GET http://denied.localhost:{port}/ ['403'] the sandbox refuses the connection: denied.localhost:{port} is a denied host"),
        ];
        assert_eq!(lines[..5], expected, "{text}");
        assert_eq!(lines[5..11].iter().filter(|line| line.contains("['400']")).count(), 6, "{text}");
        let tunnels = [
            format!("CONNECT 127.0.0.1:{port} ['200']"), "200 GOOD-PAGE".into(), "CONNECT evil.test:443 ['403']".into(),
            "CONNECT 127.0.0.1:1 ['403']".into(), "CONNECT 127.0.0.1 ['400']".into(), format!("CONNECT evil.test@127.0.0.1:{port} ['400']"),
            "SOCKS b'127.0.0.1' 0".into(), "SOCKS b'evil.test' 2".into(), "SOCKS b'127.0.0.1' 7".into(), "SOCKS b'127.1' 8".into(),
        ];
        assert_eq!(lines[11..21], tunnels, "{text}");
        let heads = server.heads();
        assert_eq!(heads[0], format!("GET /a HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"));
        assert_eq!(heads.len(), 4, "{heads:?}");
        let refusal = |host: &str, port, reason| Refusal { host: host.into(), port, reason };
        assert_eq!(net.proxy.take_refusals(CALL_ID), [
            refusal("evil.test", 80, Reason::Unlisted),
            refusal("denied.localhost", port, Reason::Denied),
            refusal("evil.test", 443, Reason::Unlisted),
            refusal("127.0.0.1", 1, Reason::Unlisted),
        ]);
        assert_eq!(net.proxy.take_refusals(CALL_ID), []);
    }
}

confined_test! {
    /// S-19: an allowed name must not lead to this machine, unless the address is listed too.
    fn allowed_names_do_not_lead_to_local_addresses(world) {
        let server = Server::start();
        let port = server.port();
        let mut net = Net::new(world, &["localhost"], &[], None);
        net.world.put("ws/c.py", &format!("{CLIENT}\nget('http://localhost:{port}/'); connect('localhost:{port}'); socks(b'localhost', {port})"));
        let text = net.run("python3 c.py 2>&1");
        assert!(text.contains("leads to a private or local address") && text.contains("SOCKS b'localhost' 2"), "{text}");
        assert!(server.heads().is_empty());
        assert_eq!(net.proxy.take_refusals(CALL_ID), [Refusal { host: "localhost".into(), port, reason: Reason::ForbiddenAddress }]);
    }
}

confined_test! {
    /// S-22.
    fn proxy_needs_the_token_of_the_session(world) {
        let server = Server::start();
        let port = server.port();
        let mut net = Net::new(world, &[&format!("127.0.0.1:{port}")], &[], None);
        net.world.put("ws/c.py", &format!("{CLIENT}
wrong = b'Proxy-Authorization: Basic ' + base64.b64encode(b'call:' + b'0' * 32) + b'\\r\\n'
for auth in (b'', wrong): get('http://127.0.0.1:{port}/', '', None, auth); connect('127.0.0.1:{port}', auth)
socks(b'127.0.0.1', {port}, 1, '0' * 32)"));
        let text = net.run("python3 c.py 2>&1");
        assert!(text.matches("['407']").count() == 4 && text.contains("SOCKS password") && server.heads().is_empty(), "{text}");
    }
}

confined_test! {
    /// S-23.
    fn usual_programs_find_the_proxy_by_their_variables(world) {
        let server = Server::start();
        let port = server.port();
        let mut net = Net::new(world, &[&format!("127.0.0.1:{port}")], &[], None);
        let text = net.run(&format!(
            "curl -s --noproxy '' http://127.0.0.1:{port}/curl; echo; no_proxy= NO_PROXY= python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:{port}/python\").read())'
             curl -s --noproxy '' -p http://127.0.0.1:{port}/tunnel; echo; curl -s --noproxy '' --proxy $ALL_PROXY http://127.0.0.1:{port}/socks; echo
             curl -s --noproxy '' 'http://127.0.0.1:{port}/?size=5000000' | wc -c
             printf 'GET /ssh HTTP/1.1\\r\\n\\r\\n' | eval $(echo \"$GIT_SSH_COMMAND\" | sed 's/.*ProxyCommand=\"//; s/\"$//; s/%h/127.0.0.1/; s/%p/{port}/') | tail -1; echo
             eval $(echo \"$GIT_SSH_COMMAND\" | sed 's/.*ProxyCommand=\"//; s/\"$//; s/%h/evil.test/; s/%p/22/') < /dev/null; true"
        ));
        assert_eq!(text.matches("GOOD-PAGE").count(), 5, "{text}");
        assert!(text.contains("5000000") && text.contains("403 Forbidden: the sandbox refuses the connection: evil.test:22"), "{text}");
    }
}

confined_test! {
    /// S-23: an upgrade passes in both forms.
    fn upgraded_connections_pass(world) {
        let server = Server::start();
        let port = server.port();
        let mut net = Net::new(world, &[&format!("127.0.0.1:{port}")], &[], None);
        net.world.put("ws/c.py", &format!("{CLIENT}
s = dial(); s.sendall(b'GET http://127.0.0.1:{port}/ws HTTP/1.1\\r\\nConnection: Upgrade\\r\\nUpgrade: test\\r\\n' + AUTH + b'\\r\\n'); print(head(s).split('\\r\\n')[0], s.recv(8))"));
        let text = net.run("python3 c.py 2>&1");
        assert!(text.starts_with("HTTP/1.1 101 Switching Protocols b'UPGRADED'"), "{text}");
    }
}

/// Notes the questions and answers them by name.
#[derive(Default)]
struct Answers(Mutex<Vec<String>>);

#[async_trait]
impl HostApproval for Answers {
    async fn approve(&self, host: &str, port: u16) -> Approval {
        self.0.lock().unwrap().push(format!("{host}:{port}"));
        if host == "localhost" { Approval::Allow } else { Approval::Refuse }
    }
}

#[test]
fn unlisted_hosts_are_asked_about_once() {
    let answers = Arc::new(Answers::default());
    let approval: Arc<dyn HostApproval> = answers.clone();
    let mut net = Net::new(World::new(), &[], &["denied.test"], Some(approval));
    // A yes opens the name, not this machine behind it.
    net.world.put("ws/c.py", &format!("{CLIENT}\nfor h in ('localhost:1', 'no.test:2', 'no.test:3', 'localhost:4', 'denied.test:5'): connect(h)"));
    let text = net.run("python3 c.py 2>&1");
    assert!(!text.contains("['200']"), "{text}");
    assert_eq!(*answers.0.lock().unwrap(), ["localhost:1", "no.test:2"]);
    let reasons: Vec<_> =
        net.proxy.take_refusals(CALL_ID).into_iter().map(|refusal| refusal.reason).collect();
    let forbidden = Reason::ForbiddenAddress;
    assert_eq!(reasons, [forbidden, Reason::NotApproved, Reason::NotApproved, forbidden, Reason::Denied]);
}

confined_test! {
    /// The shared network: a server of one command answers another one, and both reach the proxy.
    fn commands_of_a_session_can_share_their_network(world) {
        let server = Server::start();
        let port = server.port();
        let mut net = Net::new(world, &[&format!("127.0.0.1:{port}")], &[], None);
        net.world.policy.network = Network::Proxied(LoopbackScope::Session);
        let background = net.runtime.block_on(async {
            net.world.start("python3 -m http.server 8124 --bind 127.0.0.1")
        });
        net.world.put("ws/served.txt", "SERVED\n");
        let text = net.run(&format!("for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8124/ && break; sleep 0.1; done; curl -s http://127.0.0.1:8124/served.txt; curl -s --noproxy '' http://127.0.0.1:{port}/"));
        assert!(text.contains("SERVED") && text.contains("GOOD-PAGE"), "{text}");
        drop(background);
        net.world.policy.network = Network::Proxied(LoopbackScope::Command);
        let text = net.run("curl -s --noproxy '*' http://127.0.0.1:8124/ || echo CLOSED");
        assert!(text.contains("CLOSED"), "{text}");
    }
}

/// A listening socket keeps the network of its command alive, so it must go with the command, and with the session.
#[test]
fn a_hundred_proxied_commands_leave_nothing() {
    for scope in [LoopbackScope::Command, LoopbackScope::Session] {
        let mut net = Net::new(World::new(), &[], &[], None);
        let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        net.world.policy.network = Network::Proxied(scope);
        let before_session = count();
        net.run("true");
        net.wait_for_tasks(usize::from(scope == LoopbackScope::Session));
        let before = count();
        for _ in 0..100 {
            net.run("true");
        }
        net.wait_for_tasks(usize::from(scope == LoopbackScope::Session));
        assert_eq!(count(), before, "{scope:?}");
        net.world.session =
            whimbrel_sandbox::session::Session::new(net.world.sandbox.clone(), net.world.path("state"));
        net.wait_for_tasks(0);
        assert!(count() <= before_session, "{scope:?}");
    }
}

/// The limit of connections counts tunnels: the last client gets an answer only when one of the others has ended.
#[test]
fn tunnels_count_as_connections() {
    let server = Server::start();
    let port = server.port();
    let mut net = Net::new(World::new(), &[&format!("127.0.0.1:{port}")], &[], None);
    net.world.put("ws/c.py", &format!("{CLIENT}
import select
def open_one():
    s = dial(); s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: x\\r\\n' + AUTH + b'\\r\\n'); return s
tunnels = [open_one() for _ in range(256)]
for s in tunnels: assert '200' in head(s)
last = open_one()
print('WAITS', select.select([last], [], [], 0.5)[0] == [])
tunnels.pop().close()
print('ANSWERED', '200' in head(last))
"));
    let text = net.run("python3 c.py 2>&1");
    assert!(text.contains("WAITS True\nANSWERED True\n"), "{text}");
}

/// The route is that of the time at which a connection begins.
#[test]
fn route_can_change_between_commands() {
    let (server, own) = (Server::start(), Server::start());
    let mut net = Net::new(World::new(), &[], &[], None);
    let command = format!("curl -s --noproxy '' http://127.0.0.1:{}/", server.port());
    assert!(net.run(&command).contains("is not an allowed host"));
    let host_proxy = Some(HostProxy { http: Some(own.port()), socks: None });
    net.proxy.set_route(Route { upstream: None, host_proxy });
    assert!(net.run(&command).contains("GOOD-PAGE"));
    assert!(server.heads().is_empty() && own.heads()[0].starts_with("GET http://127.0.0.1:"));
}

//! The programs that are measured, and what they are told.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// What the backend answers with.
const BODY: &str = "0123456789012345678901234567890123456789012345678901";

fn spawn(command: &mut Command) -> Result<Child> {
    let shown = format!("{command:?}");
    command
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| {
            format!("cannot start {shown}: scripts/tools.sh proxies installs nginx, HAProxy and Envoy")
        })
}

/// nginx in the foreground, so that it ends with us; without a master, so that nothing else does the work.
fn start_nginx(directory: &Path, name: &str, http: &str) -> Result<Child> {
    let at = |what: &str| directory.join(format!("{name}-{what}")).display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {}; error_log {};\nevents {{ worker_connections 4096; }}\nhttp {{\n\
         access_log off; keepalive_requests 1000000000; client_body_temp_path {}; proxy_temp_path {}; fastcgi_temp_path {}; \
         uwsgi_temp_path {}; scgi_temp_path {};\n{http}\n}}\n",
        at("pid"),
        at("error.log"),
        at("body"),
        at("proxy"),
        at("fastcgi"),
        at("uwsgi"),
        at("scgi"),
    );
    let path = directory.join(format!("{name}.conf"));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    spawn(Command::new("nginx").arg("-c").arg(&path))
}

pub(super) async fn backend(directory: &Path, address: SocketAddr) -> Result<Child> {
    let http = format!(
        "server {{ listen {address}; location / {{ default_type text/plain; return 200 \"{BODY}\"; }} }}"
    );
    let child = start_nginx(directory, "backend", &http)?;
    super::until_open(address).await?;
    Ok(child)
}

pub(super) fn nginx(directory: &Path, door: SocketAddr, backend: SocketAddr) -> Result<Child> {
    let http = format!(
        "upstream backend {{ server {backend}; keepalive 128; keepalive_requests 1000000000; }}\n\
         server {{ listen {door}; location / {{\n\
         proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;\n\
         proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;\n\
         proxy_set_header X-Request-Id $request_id; }} }}"
    );
    start_nginx(directory, "nginx", &http)
}

/// What the guarded nginx lets pass.
pub(super) const KEY: &str = "APIKEY a-key-of-thirty-two-characters-7";

/// The same with a key, which a subrequest of its own judges, and a limit for all.
pub(super) fn nginx_guarded(directory: &Path, door: SocketAddr, backend: SocketAddr) -> Result<Child> {
    let http = format!(
        "map $http_authorization $known {{ default 0; \"{KEY}\" 1; }}\n\
         limit_req_zone $server_name zone=all:1m rate=10000000r/s;\n\
         upstream backend {{ server {backend}; keepalive 128; keepalive_requests 1000000000; }}\n\
         server {{ listen {door};\n\
         location = /auth {{ internal; if ($known = 0) {{ return 401; }} return 204; }}\n\
         location / {{ auth_request /auth; limit_req zone=all burst=100000 nodelay;\n\
         proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;\n\
         proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;\n\
         proxy_set_header X-Request-Id $request_id; }} }}"
    );
    start_nginx(directory, "guarded", &http)
}

/// Fairway with policies, and the header that passes them.
pub(super) async fn guarded(
    program: &Path,
    door: SocketAddr,
    backend: SocketAddr,
    policy: &str,
    tokens: Option<&Path>,
) -> Result<(Child, String)> {
    let mut command = Command::new(program);
    command.args([&door.to_string(), &backend.to_string(), "2", policy]);
    command.args(tokens);
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let output = child.stdout.take().context("the proxy has no output")?;
    let header = BufReader::new(output).lines().next_line().await?;
    Ok((child, header.context("the proxy has ended")?))
}

pub(super) fn haproxy(directory: &Path, door: SocketAddr, backend: SocketAddr) -> Result<Child> {
    let text = format!(
        "global\n  nbthread 1\n  maxconn 4096\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout \
         connect 5s\n  http-reuse always\nfrontend door\n  bind {door}\n  unique-id-format %{{+X}}o%rt%pid\n  unique-id-header \
         X-Request-Id\n  http-request set-header X-Forwarded-For %[src]\n  http-request set-header X-Forwarded-Proto http\n  \
         default_backend backend\nbackend backend\n  server one {backend}\n"
    );
    let path = directory.join("haproxy.cfg");
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    spawn(Command::new("haproxy").arg("-db").arg("-q").arg("-f").arg(&path))
}

/// Envoy with one worker and what the others do; it makes request ids and appends to `X-Forwarded-For` by itself.
pub(super) fn envoy(
    program: &Path,
    directory: &Path,
    door: SocketAddr,
    backend: SocketAddr,
) -> Result<Child> {
    let address = |of: SocketAddr| json!({"socket_address": {"address": of.ip(), "port_value": of.port()}});
    let of_type = |name: &str, mut value: Value| {
        value["@type"] = json!(format!("type.googleapis.com/envoy.extensions.{name}"));
        value
    };
    let router = of_type("filters.http.router.v3.Router", json!({}));
    let manager = of_type(
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        json!({
            "stat_prefix": "door", "use_remote_address": true, "generate_request_id": true,
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "route": {"cluster": "backend"}}]}]},
            "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
        }),
    );
    let text = json!({"static_resources": {
        "listeners": [{"name": "door", "address": address(door), "filter_chains": [{"filters": [
            {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}],
        "clusters": [{"name": "backend", "type": "STATIC", "load_assignment": {"cluster_name": "backend", "endpoints": [
            {"lb_endpoints": [{"endpoint": {"address": address(backend)}}]}]}}],
    }});
    let path = directory.join("envoy.json");
    std::fs::write(&path, text.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    // What another Envoy on this host is told by shared memory is none of ours.
    let mut command = Command::new(program);
    command.args([
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "--log-level",
        "off",
        "-c",
    ]);
    spawn(command.arg(&path).stdout(Stdio::null()))
}

pub(super) fn fairway(program: &Path, door: SocketAddr, backend: SocketAddr, routes: usize) -> Result<Child> {
    let mut command = Command::new(program);
    command.args([
        door.to_string(),
        backend.to_string(),
        "2".into(),
        routes.to_string(),
    ]);
    spawn(command.stdout(Stdio::piped()))
}

/// Changes that are measured.
const CHANGES: usize = 20;

/// From the moment that a table with another route is handed over to the first request that is served by it, among 1,000
/// routes and under no load.
pub(super) async fn changes(program: &Path, backend: SocketAddr) -> Result<Vec<Duration>> {
    let door = super::free_address()?;
    let mut child = fairway(program, door, backend, 1_000)?;
    super::until_open(door).await?;
    let mut input = child.stdin.take().context("the proxy has no input")?;
    let mut lines = BufReader::new(child.stdout.take().context("the proxy has no output")?).lines();
    let mut stream = TcpStream::connect(door).await?;
    let mut taken = Vec::new();
    for change in 0..CHANGES {
        // The program adds a route for each line, and only that route answers with a redirection.
        let path = format!("/added/{change}");
        let begun = Instant::now();
        input.write_all(format!("{path}\n").as_bytes()).await?;
        while !is_redirected(&mut stream, &path).await? {
            if begun.elapsed() > Duration::from_secs(10) {
                bail!("{path} is not served ten seconds after its table");
            }
        }
        taken.push(begun.elapsed());
        lines.next_line().await?.context("the proxy has ended")?;
    }
    Ok(taken)
}

pub(super) async fn is_redirected(stream: &mut TcpStream, path: &str) -> Result<bool> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = [0; 4096];
    let read = stream.read(&mut buffer).await?;
    Ok(buffer[..read].starts_with(b"HTTP/1.1 302"))
}

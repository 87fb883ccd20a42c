//! How does a test talk to the API server?
//!
//! With kube's client and with kubectl, both as an administrator.

use std::{path::Path, thread};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::error::RigError;

/// A client for the runtime that it is called in, which says what the server said: nothing is tried again behind a
/// test's back.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, RigError> {
    connect(config(kubeconfig).await?)
}

async fn config(kubeconfig: &Path) -> Result<Config, RigError> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    // Loopback is never behind a proxy, whatever the environment says.
    config.proxy_url = None;
    Ok(config)
}

fn connect(config: Config) -> Result<Client, RigError> {
    // Two providers in one program would leave rustls without a default. An error says that there is one already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::try_from(config).map_err(|it| RigError::Connect(Box::new(it)))
}

/// Whether a GET of this path is answered well, or else why not. For callers without a runtime, and also for those
/// with one: it runs on a thread of its own.
pub(crate) fn answers(kubeconfig: &Path, port: u16, path: &str) -> Result<(), String> {
    let ask = async {
        let mut config = config(kubeconfig).await.map_err(|it| it.to_string())?;
        config.cluster_url =
            format!("https://127.0.0.1:{port}").parse().map_err(|_| "no address".to_owned())?;
        let client = connect(config).map_err(|it| it.to_string())?;
        let request = http::Request::get(path).body(Vec::new()).map_err(|it| it.to_string())?;
        client.request_text(request).await.map(drop).map_err(|it| it.to_string())
    };
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|it| it.to_string())?;
        runtime.block_on(async {
            let limit = std::time::Duration::from_secs(5);
            tokio::time::timeout(limit, ask).await.unwrap_or_else(|_| Err("no answer".to_owned()))
        })
    };
    thread::scope(|it| it.spawn(ask).join())
        .unwrap_or_else(|_| Err("the thread that asked panicked".to_owned()))
}

//! `transom hello`: the page of the demonstration, from inside a pod.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use transom_model::Os;

use crate::context::Context;
use crate::failure::Exit;
use crate::long_running::{self, Stop};
use crate::output::Output;

/// Serve a page that says where it runs
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(in crate::commands) struct Hello {
    /// Address and port of the page
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,

    /// The name of the pod
    #[arg(long, value_name = "NAME")]
    pod: String,

    /// The name of the node
    #[arg(long, value_name = "NAME")]
    node: String,
}

impl Hello {
    pub(in crate::commands) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let page = page(&self.pod, &self.node, cx.host);
        let out = Arc::clone(&cx.out);
        long_running::run(cx, "transom-hello", false, move |stop| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(serve(&out, self.listen, page, stop))
        })
    }
}

async fn serve(out: &Output, listen: SocketAddr, page: String, stop: &Stop) -> anyhow::Result<()> {
    let show = move || {
        let page = page.clone();
        async move { ([(CONTENT_TYPE, "text/html; charset=utf-8")], page) }
    };
    let router = Router::new()
        .route("/", get(show))
        .route("/healthz", get(async || "ok"));
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    out.remark(&format!("listening on http://{address}"));
    stop.ready();
    axum::serve(listener, router)
        .with_graceful_shutdown(wait(stop.token()))
        .await?;
    Ok(())
}

/// The end of the program's wish to serve, owned so that the server can keep it.
async fn wait(token: transom_host::service::StopToken) {
    tokio::select! {
        () = token.stopped() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Names are of Kubernetes' alphabet, but nobody is trusted with our page.
fn page(pod: &str, node: &str, os: Os) -> String {
    let safe = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    let (pod, node, os) = (safe(pod), safe(node), os.as_str());
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Transom</title>\n\
         <body style=\"font: 1.2rem/1.6 system-ui; margin: 15vh auto; max-width: 36rem; padding: 0 1rem\">\n\
         <h1>It runs.</h1>\n<p>This page comes from pod <b>{pod}</b> on node <b>{node}</b>, which runs {os}.</p>\n\
         <p>Next: <code>kubectl get pods -A</code>, or <code>transom down</code>.</p>\n</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_where_it_runs_and_believes_no_markup() {
        let page = page("hello-1", "<script>", Os::Windows);
        assert!(page.contains("<b>hello-1</b>"));
        assert!(page.contains("&lt;script&gt;"));
        assert!(page.contains("runs windows"));
    }
}

//! Creates objects that are written as JSON.

use kube::Client;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Sends `object` to the collection at `path`.
pub(crate) async fn create(client: &Client, path: &str, object: &Value) -> Result<(), kube::Error> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request::<IgnoredAny>(request).await?;
    Ok(())
}

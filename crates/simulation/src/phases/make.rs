//! Pods are made: over when every one of them runs.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;

use super::{AT_ONCE, Session};
use crate::create::create;
use crate::fault::Fault;
use crate::plan::{Make, Workload};
use crate::wire::{self, NAMESPACE};

impl Session<'_> {
    pub(super) async fn make(&mut self) -> Result<(), Fault> {
        let wanted = self.options.wishes.pods;
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
        });
        create(&self.client, "/api/v1/namespaces", &namespace)
            .await
            .map_err(Fault::request("make the namespace"))?;
        self.make_account().await?;
        let phase = self.begin("create", wanted);
        let made = async {
            match self.options.wishes.make {
                Make::Deployments => self.make_deployments().await,
                Make::Pods => self.make_pods().await,
            }
        };
        let all_run = self.until(&phase, ("pods run", wanted), |counts| counts.running);
        // While the last are still made, the first are counted.
        tokio::try_join!(made, all_run)?;
        self.end(&phase, "pods", wanted);
        Ok(())
    }

    /// The account without which there are no pods. A controller makes it too, at its own time.
    async fn make_account(&self) -> Result<(), Fault> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        });
        match create(&self.client, &path, &account).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            outcome => outcome.map_err(Fault::request("make the service account")),
        }
    }

    async fn make_deployments(&self) -> Result<(), Fault> {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
        let one = async |workload| {
            let deployment = wire::deployment(workload, self.tolerate());
            create(&self.client, &path, &deployment).await
        };
        let all = stream::iter(&self.plan.workloads).map(one);
        let all = all.buffer_unordered(AT_ONCE);
        let all = all.try_for_each(async |()| Ok(()));
        all.await.map_err(Fault::request("make a Deployment"))
    }

    async fn make_pods(&self) -> Result<(), Fault> {
        let all = self.plan.workloads.iter();
        let all = all.flat_map(|workload| (0..workload.pods).map(move |number| (workload, number)));
        let all = stream::iter(all).map(|(workload, number)| self.make_pod(workload, number));
        let all = all.buffer_unordered(AT_ONCE);
        all.try_for_each(async |()| Ok(())).await
    }

    /// Makes one pod by itself.
    pub(super) async fn make_pod(&self, workload: &Workload, number: usize) -> Result<(), Fault> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let name = format!("{}-{number:04}", workload.name);
        let pod = wire::pod(workload, &name, self.tolerate());
        create(&self.client, &path, &pod)
            .await
            .map_err(Fault::request("make a pod"))
    }
}

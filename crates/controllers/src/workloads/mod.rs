//! What the controllers of workloads share: one watch for each kind, however many of them ask.
//!
//! An object is looked at when it changes, or when something does that it owns or could own.

pub(crate) mod backoff;
pub(crate) mod events;
mod images;
pub(crate) mod index;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod owners;
pub(crate) mod pods;
pub(crate) mod requests;
pub(crate) mod revisions;
mod routes;
pub(crate) mod shares;

use std::{fmt::Debug, sync::Arc};

use futures::FutureExt as _;
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Node, PersistentVolumeClaim, Pod, ReplicationController},
    },
    jiff::Timestamp,
    serde::de::DeserializeOwned,
};
use kube::{Api, Client, Resource, runtime::watcher::Config};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    backoff::Backoff,
    events::Events,
    images::Images,
    index::{Change, Index, Key},
};
use crate::{
    cronjobs, daemonsets, deployments,
    fault::Fault,
    follow::follow,
    jobs,
    queue::{Next, Queue},
    replicasets,
    shared::{Shared, map},
    statefulsets,
};

/// How many objects of one kind are worked on at once.
const AT_ONCE: usize = 16;

/// What tells the time.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What is known of the cluster, and what is to be looked at.
pub(crate) struct World {
    pub(crate) client: Client,
    clock: Clock,
    pub(crate) events: Events,
    pub(crate) pods: Index<Pod>,
    pub(crate) replica_sets: Index<ReplicaSet>,
    pub(crate) replication_controllers: Index<ReplicationController>,
    pub(crate) deployments: Index<Deployment>,
    pub(crate) daemon_sets: Index<DaemonSet>,
    pub(crate) stateful_sets: Index<StatefulSet>,
    pub(crate) jobs: Index<Job>,
    pub(crate) cron_jobs: Index<CronJob>,
    pub(crate) claims: Index<PersistentVolumeClaim>,
    pub(crate) revisions: Index<ControllerRevision>,
    pub(crate) nodes: Index<Node>,
    pub(crate) images: Images,
    /// Places where daemons failed of late.
    pub(crate) backoff: Backoff,
    pub(crate) queues: Queues,
}

/// What is to be looked at, by kind.
pub(crate) struct Queues {
    pub(crate) replica_sets: Queue<Key>,
    pub(crate) replication_controllers: Queue<Key>,
    pub(crate) deployments: Queue<Key>,
    pub(crate) daemon_sets: Queue<Key>,
    pub(crate) stateful_sets: Queue<Key>,
    pub(crate) jobs: Queue<Key>,
    /// Pods of jobs that may be no more.
    pub(crate) job_pods: Queue<Key>,
    pub(crate) cron_jobs: Queue<Key>,
}

impl World {
    fn new(client: Client, clock: Clock, events: Events) -> Self {
        Self {
            client,
            clock,
            events,
            pods: Index::new(),
            replica_sets: Index::new(),
            replication_controllers: Index::new(),
            deployments: Index::new(),
            daemon_sets: Index::new(),
            stateful_sets: Index::new(),
            jobs: Index::new(),
            cron_jobs: Index::new(),
            claims: Index::new(),
            revisions: Index::new(),
            nodes: Index::trimmed(nodes::trim),
            images: Images::new(),
            backoff: Backoff::default(),
            queues: Queues {
                replica_sets: Queue::new(),
                replication_controllers: Queue::new(),
                deployments: Queue::new(),
                daemon_sets: Queue::new(),
                stateful_sets: Queue::new(),
                jobs: Queue::new(),
                job_pods: Queue::new(),
                cron_jobs: Queue::new(),
            },
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns when everything is known. What images are for is left to those who ask for it: a cluster need not
    /// know that.
    async fn complete(&self) {
        self.pods.complete().await;
        self.replica_sets.complete().await;
        self.replication_controllers.complete().await;
        self.deployments.complete().await;
        self.daemon_sets.complete().await;
        self.stateful_sets.complete().await;
        self.jobs.complete().await;
        self.cron_jobs.complete().await;
        self.claims.complete().await;
        self.revisions.complete().await;
        self.nodes.complete().await;
    }
}

/// Runs the controllers of workloads until `stop`, or until one of their parts ends.
pub(crate) async fn run(client: Client, pods: Shared<Pod>, clock: Clock, stop: CancellationToken) {
    let (events, publisher) = events::events();
    let world = Arc::new(World::new(client.clone(), clock, events));
    let mut watches = watch_all(&world, pods);
    watches.spawn(publisher.run(client));
    let known = tokio::select! {
        known = stop.run_until_cancelled(world.complete()) => known.is_some(),
        _ = watches.join_next() => false,
    };
    if !known {
        return;
    }
    let mut loops = drive_all(&world, &stop);
    tokio::select! {
        () = async { while loops.join_next().await.is_some() {} } => {}
        _ = watches.join_next() => {}
    }
}

/// Begins to follow everything that matters.
fn watch_all(world: &Arc<World>, pods: Shared<Pod>) -> JoinSet<()> {
    let mut all = JoinSet::new();
    let tasks = &mut all;
    watch_pods(tasks, world, pods);
    watch(
        tasks,
        world,
        |world| &world.replica_sets,
        routes::replica_set,
    );
    watch(
        tasks,
        world,
        |world| &world.replication_controllers,
        routes::replication_controller,
    );
    watch(tasks, world, |world| &world.deployments, routes::deployment);
    watch(tasks, world, |world| &world.daemon_sets, routes::daemon_set);
    watch(tasks, world, |world| &world.revisions, routes::revision);
    watch(tasks, world, |world| &world.nodes, routes::node);
    watch(
        tasks,
        world,
        |world| &world.stateful_sets,
        routes::stateful_set,
    );
    watch(tasks, world, |world| &world.claims, |_, _| {});
    watch(tasks, world, |world| &world.jobs, routes::job);
    watch(tasks, world, |world| &world.cron_jobs, routes::cron_job);
    let known = Arc::clone(world);
    tasks.spawn(async move {
        let changed = |object: &str| routes::image(&known, object);
        known.images.follow(known.client.clone(), changed).await;
    });
    all
}

/// Begins to work on everything that is to be looked at.
fn drive_all(world: &Arc<World>, stop: &CancellationToken) -> JoinSet<()> {
    let controllers: [Controller; 8] = [
        (
            "replicasets",
            |world| &world.queues.replica_sets,
            |world, key| replicasets::reconcile::<ReplicaSet>(world, key).boxed(),
        ),
        (
            "replicationcontrollers",
            |world| &world.queues.replication_controllers,
            |world, key| replicasets::reconcile::<ReplicationController>(world, key).boxed(),
        ),
        (
            "deployments",
            |world| &world.queues.deployments,
            |world, key| deployments::reconcile(world, key).boxed(),
        ),
        (
            "daemonsets",
            |world| &world.queues.daemon_sets,
            |world, key| daemonsets::reconcile(world, key).boxed(),
        ),
        (
            "statefulsets",
            |world| &world.queues.stateful_sets,
            |world, key| statefulsets::reconcile(world, key).boxed(),
        ),
        (
            "jobs",
            |world| &world.queues.jobs,
            |world, key| jobs::reconcile(world, key).boxed(),
        ),
        (
            "jobpods",
            |world| &world.queues.job_pods,
            |world, key| jobs::let_go(world, key).boxed(),
        ),
        (
            "cronjobs",
            |world| &world.queues.cron_jobs,
            |world, key| cronjobs::reconcile(world, key).boxed(),
        ),
    ];
    let mut all = JoinSet::new();
    for (name, queue, work) in controllers {
        all.spawn(drive(Arc::clone(world), name, queue, work, stop.clone()));
    }
    all
}

/// A controller: its name, what it is to look at, and how it works on that.
type Controller = (&'static str, fn(&World) -> &Queue<Key>, Work);
type Work = fn(Arc<World>, Key) -> futures::future::BoxFuture<'static, Result<Next, Fault>>;

/// Works on a queue.
async fn drive(
    world: Arc<World>,
    name: &'static str,
    queue: fn(&World) -> &Queue<Key>,
    work: Work,
    stop: CancellationToken,
) {
    queue(&world)
        .drive(name, AT_ONCE, &stop, |key| work(Arc::clone(&world), key))
        .await;
}

/// The same as for other kinds, from the watch that all controllers share.
fn watch_pods(tasks: &mut JoinSet<()>, world: &Arc<World>, pods: Shared<Pod>) {
    let world = Arc::clone(world);
    tasks.spawn(async move {
        pods.follow(|event| {
            for change in world.pods.take(map(event, Arc::unwrap_or_clone)) {
                routes::pod(&world, &change);
            }
        })
        .await;
    });
}

/// Keeps an index up to date, and has looked at what a change is about.
fn watch<K>(
    tasks: &mut JoinSet<()>,
    world: &Arc<World>,
    index: fn(&World) -> &Index<K>,
    route: fn(&World, &Change<K>),
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let world = Arc::clone(world);
    tasks.spawn(async move {
        let objects = Api::<K>::all(world.client.clone());
        follow(objects, Config::default(), |event| {
            for change in index(&world).take(event) {
                route(&world, &change);
            }
        })
        .await;
    });
}

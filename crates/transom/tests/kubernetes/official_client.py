"""The official Python client against a server: prints one JSON object of what it saw, in order.

Every wait has a bound; whatever the client refuses ends the script with a traceback.
"""

import json
import sys
import threading

import yaml
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

TIMEOUT = 30


def failure(call, *arguments, **named):
    """The code and the reason of a call that must fail."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        return [error.status, json.loads(error.body)["reason"]]
    return ["no failure"]


def config_maps(core):
    """Create, list, watch, patch, replace and delete."""
    seen = {}
    events = []
    first = core.create_namespaced_config_map(
        "default",
        client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name="python", labels={"made": "python"}),
            data={"a": "1"},
        ),
    )

    def follow():
        stream = watch.Watch().stream(
            core.list_namespaced_config_map,
            "default",
            label_selector="made=python",
            resource_version=first.metadata.resource_version,
            timeout_seconds=TIMEOUT,
        )
        for event in stream:
            events.append([event["type"], event["object"].data])
            if event["type"] == "DELETED":
                break

    follower = threading.Thread(target=follow)
    follower.start()
    seen["again"] = failure(
        core.create_namespaced_config_map,
        "default",
        client.V1ConfigMap(metadata=client.V1ObjectMeta(name="python")),
    )
    listed = core.list_namespaced_config_map("default", label_selector="made=python")
    seen["listed"] = [item.metadata.name for item in listed.items]
    core.patch_namespaced_config_map("python", "default", {"data": {"b": "2"}})
    first.data = {"a": "stale"}
    seen["stale"] = failure(core.replace_namespaced_config_map, "python", "default", first)
    fresh = core.read_namespaced_config_map("python", "default")
    fresh.data = {"c": "3"}
    seen["replaced"] = core.replace_namespaced_config_map("python", "default", fresh).data
    core.delete_namespaced_config_map("python", "default")
    seen["gone"] = failure(core.read_namespaced_config_map, "python", "default")
    follower.join(TIMEOUT)
    seen["events"] = events
    return seen


def deployments(apps):
    """A kind with defaults, a scale and a status of its own."""
    labels = {"app": "python"}
    container = client.V1Container(name="main", image="registry.example/main")
    made = apps.create_namespaced_deployment(
        "default",
        client.V1Deployment(
            metadata=client.V1ObjectMeta(name="python"),
            spec=client.V1DeploymentSpec(
                replicas=1,
                selector=client.V1LabelSelector(match_labels=labels),
                template=client.V1PodTemplateSpec(
                    metadata=client.V1ObjectMeta(labels=labels),
                    spec=client.V1PodSpec(containers=[container]),
                ),
            ),
        ),
    )
    seen = {
        "defaults": [
            made.spec.strategy.type,
            made.spec.template.spec.containers[0].image_pull_policy,
            made.spec.revision_history_limit,
        ]
    }
    scaled = apps.patch_namespaced_deployment_scale("python", "default", {"spec": {"replicas": 3}})
    seen["scaled"] = scaled.spec.replicas
    status = apps.patch_namespaced_deployment_status(
        "python", "default", {"status": {"replicas": 2}, "spec": {"replicas": 9}}
    )
    seen["status"] = [status.status.replicas, status.spec.replicas]
    seen["invalid"] = failure(
        apps.patch_namespaced_deployment, "python", "default", {"spec": {"replicas": -1}}
    )
    apps.delete_namespaced_deployment("python", "default", propagation_policy="Background")
    seen["left"] = [item.metadata.name for item in apps.list_namespaced_deployment("default").items]
    return seen


def custom_resources(api, extensions, path):
    """A definition from a file, and its kind through the dynamic client."""
    with open(path, encoding="utf-8") as file:
        definition = yaml.safe_load(file)
    extensions.create_custom_resource_definition(definition)
    for event in watch.Watch().stream(
        extensions.list_custom_resource_definition,
        field_selector="metadata.name=widgets.example.org",
        timeout_seconds=TIMEOUT,
    ):
        conditions = (event["object"].status.conditions if event["object"].status else None) or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    widgets = dynamic.DynamicClient(api).resources.get(api_version="example.org/v1", kind="Widget")
    body = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "python"},
        "spec": {"size": "small", "unknown": True},
        "status": {"phase": "Early"},
    }
    made = widgets.create(body=body, namespace="default")
    seen = {"made": [made.spec.to_dict(), made.status and made.status.to_dict()]}
    body["metadata"]["name"] = "wrong"
    body["spec"]["size"] = "huge"
    seen["wrong"] = failure(widgets.create, body=body, namespace="default")
    patched = widgets.status.patch(
        name="python",
        namespace="default",
        body={"status": {"phase": "Ready"}, "spec": {"size": "large"}},
        content_type="application/merge-patch+json",
    )
    seen["status"] = [patched.status.phase, patched.spec.size]
    answer = api.rest_client.request(
        "GET",
        f"{api.configuration.host}/apis/example.org/v1/namespaces/default/widgets",
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )
    table = json.loads(answer.read())
    seen["table"] = [
        [column["name"] for column in table["columnDefinitions"]],
        table["rows"][0]["cells"],
    ]
    widgets.delete(name="python", namespace="default")
    return seen


def main():
    """Takes the kubeconfig and the file of the definition."""
    config.load_kube_config(sys.argv[1])
    api = client.ApiClient()
    seen = {
        "version": client.VersionApi(api).get_code().minor,
        "configMaps": config_maps(client.CoreV1Api(api)),
        "deployments": deployments(client.AppsV1Api(api)),
        "custom": custom_resources(api, client.ApiextensionsV1Api(api), sys.argv[2]),
    }
    json.dump(seen, sys.stdout)


main()

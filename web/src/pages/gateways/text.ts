import { texts } from "../../text/t";

export const t = texts("gateways", {
    title: "Gateways and APIs", gateways: "Gateways", routes: "Routes", policies: "Policies", products: "API products", keys: "API keys", requests: "Requests for keys", usage: "Usage", explain: "Explain a request",
    name: "Name", namespace: "Namespace", className: "Class", address: "Address", listeners: "Listeners", status: "Status", hosts: "Host names", target: "Target", kind: "Kind", plans: "Plans", none: "Nothing here yet.",
    noGateways: "No gateways", noGatewaysHelp: "A Gateway opens ports for HTTPRoutes. Choose “Publish port 8080” when you create a machine, or apply one with kubectl.",
    attachedRoutes: "Routes", listener: "Listener", protocolAndPort: "Protocol and port", message: "Message", summary: "Summary", conditions: "Conditions", events: "Events", yaml: "YAML", why: "Why", parent: "Parent {name}", ingress: "Router {name}", created: "Created", labels: "Labels", parents: "Parents", product: "API product", requestedBy: "Requested by", noSuch: "There is no page for objects of that kind.", told: "{what}: {name}", namespaceNeeded: "Namespaces cannot be listed, so its name has to be typed.", noPlans: "No PlanPolicy offers a plan for it.", accepted: "Accepted", enforced: "Enforced", approvalMode: "Approval", published: "Published",
    requestKey: "Request a key", plan: "Plan", useCase: "What it is for", send: "Send request", cancel: "Cancel", inNamespace: "In which namespace the key is kept", keyName: "Name of the key",
    approve: "Approve", reject: "Reject", by: "requested by {who}", noRequests: "Nobody waits for a key.", noKeys: "No keys.", revoke: "Delete key", revokeTitle: "Delete key {name}?", revokeWhat: "The key {name} stops working at once.", reveal: "The key is in the Secret {name}; kubectl shows it.",
    method: "Method", url: "URL, such as https://api.apps.fairway.localhost/hello", headers: "Headers, one in each line: Name: value", ask: "Explain", answer: "Answer", stage: "Stage", what: "What", seen: "What was found", passes: "Passes", yes: "passes", no: "stops here",
    counters: "Counters of limits", counter: "Counter", count: "Count", reset: "Starts anew", noCounters: "No limit has been counted yet.", rules: "Published rules", path: "Path", backends: "Backends", headersNote: "Nothing is sent to the backend.",
});

// The kinds that pages use, with the types that the server's OpenAPI says they have.

import type { components as Argo } from "./generated/argo";
import type { components as Cdi } from "./generated/cdi";
import type { components as Core } from "./generated/core";
import type { components as Devportal } from "./generated/devportal";
import type { components as Discovery } from "./generated/discovery";
import type { components as Fairway } from "./generated/fairway";
import type { components as Gateway } from "./generated/gateway";
import type { components as Kuadrant } from "./generated/kuadrant";
import type { components as Kubevirt } from "./generated/kubevirt";
import type { components as Plans } from "./generated/plans";
import type { components as Rbac } from "./generated/rbac";
import type { components as Route } from "./generated/route";
import type { components as Snapshot } from "./generated/snapshot";
import type { components as Tenancy } from "./generated/tenancy";

export type ObjectMeta = Core["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];

/** What every object has. */
export interface KubernetesObject {
    apiVersion?: string;
    kind?: string;
    metadata?: ObjectMeta;
}

/** Where a kind is served. The type parameter is what its objects look like. */
export interface Resource<T extends KubernetesObject = KubernetesObject> {
    group: string;
    version: string;
    plural: string;
    kind: string;
    namespaced: boolean;
    /** Never there; it carries the type. */
    readonly type?: T;
    /** What no list shows, and is most of the object. Who looks at one object alone has it. */
    bulk?: readonly string[];
}

function kind<T extends KubernetesObject>(apiVersion: string, name: string, plural: string, namespaced = true, bulk?: readonly string[]): Resource<T> {
    const [group, version] = apiVersion.includes("/") ? (apiVersion.split("/") as [string, string]) : ["", apiVersion];
    return { group, version, plural, kind: name, namespaced, bulk };
}

export type Application = Argo["schemas"]["io.argoproj.v1alpha1.Application"];
export type DataSource = Cdi["schemas"]["io.kubevirt.cdi.v1beta1.DataSource"];
export type CoreEvent = Core["schemas"]["io.k8s.api.core.v1.Event"];
export type Namespace = Core["schemas"]["io.k8s.api.core.v1.Namespace"];
export type Node = Core["schemas"]["io.k8s.api.core.v1.Node"];
export type Service = Core["schemas"]["io.k8s.api.core.v1.Service"];
export type EndpointSlice = Discovery["schemas"]["io.k8s.api.discovery.v1.EndpointSlice"];
export type APIProduct = Devportal["schemas"]["io.kuadrant.devportal.v1alpha1.APIProduct"];
export type APIKey = Devportal["schemas"]["io.kuadrant.devportal.v1alpha1.APIKey"];
export type APIKeyRequest = Devportal["schemas"]["io.kuadrant.devportal.v1alpha1.APIKeyRequest"];
export type APIKeyApproval = Devportal["schemas"]["io.kuadrant.devportal.v1alpha1.APIKeyApproval"];
export type Repository = Fairway["schemas"]["dev.fairway.v1alpha1.Repository"];
export type CatalogEntity = Fairway["schemas"]["dev.fairway.v1alpha1.CatalogEntity"];
export type Voyage = Fairway["schemas"]["dev.fairway.v1alpha1.Voyage"];
export type User = Fairway["schemas"]["dev.fairway.v1alpha1.User"];
export type Group = Fairway["schemas"]["dev.fairway.v1alpha1.Group"];
export type GatewayObject = Gateway["schemas"]["io.k8s.networking.gateway.v1.Gateway"];
export type HTTPRoute = Gateway["schemas"]["io.k8s.networking.gateway.v1.HTTPRoute"];
export type AuthPolicy = Kuadrant["schemas"]["io.kuadrant.v1.AuthPolicy"];
export type RateLimitPolicy = Kuadrant["schemas"]["io.kuadrant.v1.RateLimitPolicy"];
export type VirtualMachine = Kubevirt["schemas"]["io.kubevirt.v1.VirtualMachine"];
export type VirtualMachineInstance = Kubevirt["schemas"]["io.kubevirt.v1.VirtualMachineInstance"];
export type VirtualMachineInstanceMigration = Kubevirt["schemas"]["io.kubevirt.v1.VirtualMachineInstanceMigration"];
export type PlanPolicy = Plans["schemas"]["io.kuadrant.extensions.v1alpha1.PlanPolicy"];
export type ClusterRoleBinding = Rbac["schemas"]["io.k8s.api.rbac.v1.ClusterRoleBinding"];
export type RoleBinding = Rbac["schemas"]["io.k8s.api.rbac.v1.RoleBinding"];
export type RouteObject = Route["schemas"]["io.openshift.route.v1.Route"];
export type VirtualMachineSnapshot = Snapshot["schemas"]["io.kubevirt.snapshot.v1beta1.VirtualMachineSnapshot"];
export type VirtualMachineRestore = Snapshot["schemas"]["io.kubevirt.snapshot.v1beta1.VirtualMachineRestore"];
export type Workspace = Tenancy["schemas"]["io.kcp.tenancy.v1alpha1.Workspace"];

export const APPLICATIONS = kind<Application>("argoproj.io/v1alpha1", "Application", "applications", true, ["status.history", "status.operationState.operation", "status.operationState.syncResult"]);
export const DATA_SOURCES = kind<DataSource>("cdi.kubevirt.io/v1beta1", "DataSource", "datasources");
export const EVENTS = kind<CoreEvent>("v1", "Event", "events");
export const NAMESPACES = kind<Namespace>("v1", "Namespace", "namespaces", false);
export const NODES = kind<Node>("v1", "Node", "nodes", false);
export const SERVICES = kind<Service>("v1", "Service", "services");
export const ENDPOINT_SLICES = kind<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "endpointslices");
export const API_PRODUCTS = kind<APIProduct>("devportal.kuadrant.io/v1alpha1", "APIProduct", "apiproducts");
export const API_KEYS = kind<APIKey>("devportal.kuadrant.io/v1alpha1", "APIKey", "apikeys");
export const API_KEY_REQUESTS = kind<APIKeyRequest>("devportal.kuadrant.io/v1alpha1", "APIKeyRequest", "apikeyrequests");
export const API_KEY_APPROVALS = kind<APIKeyApproval>("devportal.kuadrant.io/v1alpha1", "APIKeyApproval", "apikeyapprovals");
export const REPOSITORIES = kind<Repository>("fairway.dev/v1alpha1", "Repository", "repositories", false);
export const CATALOG_ENTITIES = kind<CatalogEntity>("fairway.dev/v1alpha1", "CatalogEntity", "catalogentities", false);
export const VOYAGES = kind<Voyage>("fairway.dev/v1alpha1", "Voyage", "voyages");
export const USERS = kind<User>("fairway.dev/v1alpha1", "User", "users", false);
export const GROUPS = kind<Group>("fairway.dev/v1alpha1", "Group", "groups", false);
export const GATEWAYS = kind<GatewayObject>("gateway.networking.k8s.io/v1", "Gateway", "gateways");
export const HTTP_ROUTES = kind<HTTPRoute>("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes");
export const AUTH_POLICIES = kind<AuthPolicy>("kuadrant.io/v1", "AuthPolicy", "authpolicies");
export const RATE_LIMIT_POLICIES = kind<RateLimitPolicy>("kuadrant.io/v1", "RateLimitPolicy", "ratelimitpolicies");
export const VIRTUAL_MACHINES = kind<VirtualMachine>("kubevirt.io/v1", "VirtualMachine", "virtualmachines");
export const VIRTUAL_MACHINE_INSTANCES = kind<VirtualMachineInstance>("kubevirt.io/v1", "VirtualMachineInstance", "virtualmachineinstances");
export const MIGRATIONS = kind<VirtualMachineInstanceMigration>("kubevirt.io/v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations");
export const PLAN_POLICIES = kind<PlanPolicy>("extensions.kuadrant.io/v1alpha1", "PlanPolicy", "planpolicies");
export const CLUSTER_ROLE_BINDINGS = kind<ClusterRoleBinding>("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false);
export const ROLE_BINDINGS = kind<RoleBinding>("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
export const ROUTES = kind<RouteObject>("route.openshift.io/v1", "Route", "routes");
export const SNAPSHOTS = kind<VirtualMachineSnapshot>("snapshot.kubevirt.io/v1beta1", "VirtualMachineSnapshot", "virtualmachinesnapshots");
export const RESTORES = kind<VirtualMachineRestore>("snapshot.kubevirt.io/v1beta1", "VirtualMachineRestore", "virtualmachinerestores");
export const WORKSPACES = kind<Workspace>("tenancy.kcp.io/v1alpha1", "Workspace", "workspaces", false);

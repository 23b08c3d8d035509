// One machine, with the tabs of OpenShift's console.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { APPLICATIONS, useAction, useList, useObject, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, type VirtualMachine, type VirtualMachineInstance } from "../../api";
import { t } from "../../text/machines";
import { Age, CommandHint, Conditions, Events, Failed, Loading, NotFound, PageHeader, sh, StatusLabel, Why } from "../../widgets";
import { AddressTabs, Facts, type Looked, Problem, Tags, Unread } from "../pieces/parts";
import { act } from "./act";
import { DeleteMachines } from "./List";
import { Metrics } from "./Metrics";
import { MigrationNow, Migrations } from "./Migrations";
import { type Action, addressOf, applicationOf, folderOf, possible, sizeOf, statusOf } from "./model";
import { Snapshots } from "./Snapshots";
import { YamlEditor } from "./YamlEditor";

// A terminal and a screen are large, and most visits need neither.
const Console = lazy(() => import("./Console"));

export function Details(): ReactNode {
    const { namespace = "", name = "" } = useParams();
    const found = useObject(VIRTUAL_MACHINES, namespace, name);
    const instance = useObject(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (found.state === "absent") return <NotFound />;
    if (!found.object) return found.error ? <Failed isPage error={found.error} /> : <Loading isPage />;
    return <Shown machine={found.object} instance={instance.object} looked={instance} namespace={namespace} name={name} />;
}

interface Props { machine: VirtualMachine; instance?: VirtualMachineInstance; looked: Looked; namespace: string; name: string }

function Shown(props: Props): ReactNode {
    const { machine, instance, namespace, name } = props;
    const navigate = useNavigate();
    const [isDeleting, setDeleting] = useState(false);
    const status = statusOf(machine);
    const doing = useAction((action: Action) => act(action, namespace, name), action => t("requested", { action: t(action), name }));
    const isRunning = instance?.status?.phase === "Running";
    const application = applicationOf(machine);
    return (
        <>
            <PageHeader
                title={name} above={[{ to: "/machines", label: t("title") }, { to: `/machines?namespace=${namespace}`, label: namespace }]} here={name}
                actions={<>
                    {possible(status).map(action => <Button key={action} variant="secondary" isDisabled={doing.isRunning} onClick={() => void doing.run(action)}>{t(action)}</Button>)}
                    <Button variant="secondary" isDanger onClick={() => setDeleting(true)}>{t("remove")}</Button>
                </>}
            >
                <StatusLabel word={status} />
            </PageHeader>
            <PageSection className="fw-stack">
                {application && <Alert isInline isPlain variant="info" title={t("declared", { application })}><ToApplication name={application} /></Alert>}
                <Problem error={doing.error} />
                <Unread of={[[t("instances"), props.looked]]} />
                <MigrationNow namespace={namespace} name={name} />
                <AddressTabs label={name} tabs={[
                    ["overview", t("overview"), () => <Overview {...props} />],
                    ["metrics", t("metrics"), () => (isRunning ? <Metrics namespace={namespace} name={name} /> : <NotRunning looked={props.looked} />)],
                    ["yaml", t("yaml"), () => <YamlEditor machine={machine} />],
                    ["configuration", t("configuration"), () => <Configuration machine={machine} />],
                    ["events", t("events"), () => <><h2>{t("events")}</h2><Events kind="VirtualMachine" namespace={namespace} name={name} /><Events kind="VirtualMachineInstance" namespace={namespace} name={name} /></>],
                    ["console", t("console"), () => (isRunning ? <Suspense fallback={<Loading />}><Console namespace={namespace} name={name} /></Suspense> : <NotRunning looked={props.looked} />)],
                    ["snapshots", t("snapshots"), () => <Snapshots machine={machine} />],
                    ["migrations", t("migrations"), () => <Migrations namespace={namespace} name={name} />],
                    ["diagnostics", t("diagnostics"), () => <Diagnostics {...props} />],
                    ["why", t("why"), () => <Why kind="VirtualMachine" namespace={namespace} name={name} />],
                ]} />
                <CommandHint commands={[sh`kubectl get vm ${name} -n ${namespace} -o yaml`, sh`fairway vm console ${name} -n ${namespace}`, sh`fairway vm ${possible(status)[0] ?? "start"} ${name} -n ${namespace}`]} />
            </PageSection>
            {isDeleting && <DeleteMachines machines={[machine]} onClose={() => setDeleting(false)} onDone={() => void navigate("/machines")} />}
        </>
    );
}

/** The mark on a machine may leave out where its Application is; as long as there is one of that name, it is that one. */
function ToApplication(props: { name: string }): ReactNode {
    const { items } = useList(APPLICATIONS, { fieldSelector: `metadata.name=${props.name}` });
    const [only, another] = items;
    const to = only && !another ? `/applications/${only.metadata.namespace}/${props.name}` : `/applications?text=${encodeURIComponent(props.name)}`;
    return <Link to={to}>{t("toApplication")}</Link>;
}

/** Of an instance that could not be looked at nobody knows whether it runs; why it could not is said above. */
function NotRunning(props: { looked: Looked }): ReactNode {
    if (props.looked.state === "loading") return <Loading />;
    if (props.looked.error) return null;
    return <Alert variant="info" isInline title={t("notRunning")} />;
}

function Overview(props: Props): ReactNode {
    const { machine, instance } = props;
    const { cpu, memory } = sizeOf(machine);
    const agent = instance?.status?.conditions?.find(it => it.type === "AgentConnected")?.status === "True";
    return (
        <Facts of={[
            [t("status"), <StatusLabel key="status" word={statusOf(machine)} />],
            [t("created"), <Age key="age" of={machine.metadata?.creationTimestamp} />],
            [t("namespace"), machine.metadata?.namespace], [t("folder"), folderOf(machine)],
            [t("node"), instance?.status?.nodeName], [t("address"), addressOf(instance)],
            [t("os"), instance?.status?.guestOSInfo?.prettyName], [t("guestAgent"), agent ? t("connected") : "-"],
            [t("cpu"), cpu], [t("memory"), memory], [t("runStrategy"), machine.spec?.runStrategy],
            [t("labels"), <Tags key="labels" of={machine.metadata?.labels} />],
            [t("annotations"), <Tags key="annotations" of={machine.metadata?.annotations} />],
        ]} />
    );
}

function Configuration(props: { machine: VirtualMachine }): ReactNode {
    const spec = props.machine.spec?.template?.spec;
    const { cpu, memory } = sizeOf(props.machine);
    const volumes = new Map((spec?.volumes ?? []).map(volume => [volume.name, Object.keys(volume).filter(key => key !== "name").join(", ")]));
    return (
        <>
            <Facts of={[
                [t("cpu"), cpu], [t("memory"), memory], [t("instancetype"), props.machine.spec?.instancetype?.name], [t("runStrategy"), props.machine.spec?.runStrategy],
                [t("firmware"), spec?.domain?.firmware?.bootloader ? Object.keys(spec.domain.firmware.bootloader).join(", ") : "bios"],
            ]} />
            <h2>{t("disks")}</h2>
            <ul className="fw-plain-list">{(spec?.domain?.devices?.disks ?? []).map(disk => <li key={disk.name}>{disk.name}: {volumes.get(disk.name) ?? "-"}{disk.disk?.bus ? `, ${disk.disk.bus}` : ""}</li>)}</ul>
            <h2>{t("networks")}</h2>
            <ul className="fw-plain-list">{(spec?.domain?.devices?.interfaces ?? []).map(card => <li key={card.name}>{card.name}: {["masquerade", "bridge", "sriov", "binding"].find(key => key in card) ?? "-"}{card.macAddress ? `, ${card.macAddress}` : ""}</li>)}</ul>
        </>
    );
}

function Diagnostics(props: Props): ReactNode {
    return (
        <>
            <h2>{t("conditions")}</h2>
            <Conditions conditions={props.machine.status?.conditions} />
            {props.instance && <><h2>{t("instanceConditions")}</h2><Conditions conditions={props.instance.status?.conditions} /></>}
        </>
    );
}

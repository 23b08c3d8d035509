// The head of a page: title, where it is, what can be done.

import { Breadcrumb, BreadcrumbItem } from "@patternfly/react-core/dist/dynamic/components/Breadcrumb";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { Title } from "@patternfly/react-core/dist/dynamic/components/Title";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { usePageTitle } from "../shell/title";

interface Props {
    title: string;
    description?: ReactNode;
    /** Pages above this one. */
    above?: { to: string; label: string }[];
    here?: string;
    actions?: ReactNode;
    children?: ReactNode;
}

export function PageHeader({ title, description, above, here, actions, children }: Props) {
    usePageTitle(title);
    return (
        <PageSection>
            {above && (
                <Breadcrumb>
                    {above.map(one => (
                        <BreadcrumbItem key={one.to} render={({ className }) => <Link to={one.to} className={className}>{one.label}</Link>} />
                    ))}
                    {here && <BreadcrumbItem isActive>{here}</BreadcrumbItem>}
                </Breadcrumb>
            )}
            <div className="fw-page-head">
                <Title headingLevel="h1">{title}</Title>
                {actions && <div className="fw-row-gap">{actions}</div>}
            </div>
            {description && <p className="fw-muted fw-wrap">{description}</p>}
            {children && <div className="fw-top">{children}</div>}
        </PageSection>
    );
}

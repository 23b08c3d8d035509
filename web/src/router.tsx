// From an address to a page.

import { Suspense, useState } from "react";
import { createBrowserRouter, Navigate, useParams } from "react-router";
import { componentOf } from "./pages";
import { ErrorBoundary } from "./shell/ErrorBoundary";
import { Loading, NotFound } from "./widgets/States";
import { Shell } from "./shell/Shell";

function PageOfPath() {
    const { page = "" } = useParams();
    return (
        <ErrorBoundary key={page}>
            <Suspense fallback={<Loading isPage />}>
                <Page name={page} />
            </Suspense>
        </ErrorBoundary>
    );
}

function Page({ name }: { name: string }) {
    const [Component] = useState(() => componentOf(name));
    return Component ? <Component /> : <NotFound />;
}

export function makeRouter(basename: string): ReturnType<typeof createBrowserRouter> {
    return createBrowserRouter(
        [
            {
                element: <Shell />,
                children: [
                    { index: true, element: <Navigate to="/home" replace /> },
                    { path: "/:page/*", element: <PageOfPath /> },
                    { path: "*", element: <NotFound /> },
                ],
            },
        ],
        { basename },
    );
}

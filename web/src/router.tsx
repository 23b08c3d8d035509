// From an address to a page.

import { Suspense } from "react";
import { createBrowserRouter, Navigate, useParams } from "react-router";
import { pages } from "./pages";
import { ErrorBoundary } from "./shell/ErrorBoundary";
import { Loading, NotFound } from "./widgets/States";
import { Shell } from "./shell/Shell";

function PageOfPath() {
    const { page = "" } = useParams();
    const found = pages.get(page);
    if (!found) return <NotFound />;
    const { Page } = found;
    return (
        <ErrorBoundary key={page}>
            <Suspense fallback={<Loading />}>
                <Page />
            </Suspense>
        </ErrorBoundary>
    );
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

// Runs of golden paths: the list, and one run with its steps and log.

import { Route, Routes } from "react-router";
import { NotFound } from "../../widgets";
import { RunPage } from "./RunPage";
import { RunsPage } from "./RunsPage";

export default function Voyages() {
    return (
        <Routes>
            <Route index element={<RunsPage />} />
            <Route path=":namespace/:name" element={<RunPage />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}

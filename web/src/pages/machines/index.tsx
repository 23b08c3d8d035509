// Virtual machines, as OpenShift's console shows them.

import { Route, Routes } from "react-router";
import "../pieces/pieces.css";
import { NotFound } from "../../widgets";
import { Details } from "./Details";
import { List } from "./List";

export default function Machines() {
    return (
        <Routes>
            <Route index element={<List />} />
            <Route path=":namespace/:name" element={<Details />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}

// Applications, as Argo CD shows them.

import { Route, Routes } from "react-router";
import "../pieces/pieces.css";
import { NotFound } from "../../widgets";
import { Details } from "./Details";
import { List } from "./List";

export default function Applications() {
    return (
        <Routes>
            <Route index element={<List />} />
            <Route path=":namespace/:name" element={<Details />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}

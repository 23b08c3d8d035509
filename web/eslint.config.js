import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
    { ignores: ["dist", "node_modules", "src/api/generated"] },
    js.configs.recommended,
    tseslint.configs.recommended,
    {
        files: ["src/**/*.{ts,tsx}"],
        plugins: { "react-hooks": hooks },
        rules: {
            "react-hooks/rules-of-hooks": "error",
            "react-hooks/exhaustive-deps": "error",
            "no-restricted-syntax": [
                "error",
                {
                    // Texts of objects, logs and repositories are strangers' texts.
                    selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
                    message: "Render texts as text.",
                },
                {
                    selector: "JSXOpeningElement[name.name='a'] > JSXAttribute[name.name='href'] > JSXExpressionContainer",
                    message: "Use SafeLink: an address from an object may be javascript:.",
                },
                {
                    selector: "JSXText[value=/[A-Za-z]{2}/]",
                    message: "Texts are in src/text, where they can be translated.",
                },
                {
                    selector: "JSXAttribute[name.name=/^(aria-label|title|label|placeholder|alt|description)$/] > Literal[value=/[A-Za-z]{2}/]",
                    message: "Texts are in src/text, where they can be translated.",
                },
            ],
        },
    },
    {
        files: ["src/**/*.{ts,tsx}"],
        ignores: ["src/text/**", "src/**/*.test.{ts,tsx}"],
        rules: {
            "no-restricted-imports": ["error", { patterns: [{ group: ["**/text/t"], importNames: ["texts", "plurals"], message: "Texts are declared in src/text alone." }] }],
        },
    },
    // A classic script for browsers.
    { files: ["src/shell/early.js"], languageOptions: { sourceType: "script", globals: { document: "readonly", localStorage: "readonly", matchMedia: "readonly" } } },
    { files: ["scripts/*.mjs"], languageOptions: { globals: { process: "readonly", console: "readonly", Buffer: "readonly", URL: "readonly" } } },
);

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
            ],
        },
    },
    { files: ["scripts/*.mjs"], languageOptions: { globals: { process: "readonly", console: "readonly", Buffer: "readonly", URL: "readonly" } } },
);

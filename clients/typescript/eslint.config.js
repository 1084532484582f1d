import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "src/gen/", "node_modules/"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      eqeqeq: "error",
      "max-lines-per-function": ["error", 50],
      // An empty string means "not given", in the environment as in protobuf.
      "@typescript-eslint/prefer-nullish-coalescing": [
        "error",
        { ignorePrimitives: { string: true } },
      ],
      // Numbers and bigints in messages read well as they are.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowNever: true },
      ],
    },
  },
  {
    files: ["tests/**"],
    rules: {
      "max-lines-per-function": "off",
      // node:test gathers the promises of its tests itself.
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", name: ["test", "suite", "describe", "it"], package: "node:test" },
          ],
        },
      ],
    },
  },
);

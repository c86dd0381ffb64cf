"""The only package folder that touches the platform: `workers`, `js` and `pyodide`. Not importable elsewhere."""

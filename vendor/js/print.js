// Paper is white: a dark page is printed in the light palette, and is dark again afterwards.
let dark = false;
function paper(printing) {
  const page = document.documentElement.dataset;
  if (printing && page.theme === "dark") {
    dark = true;
    page.theme = "light";
  } else if (!printing && dark) {
    dark = false;
    page.theme = "dark";
  }
}
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));

##@ Image, chart, release
.PHONY: image
image: deps ## the operator's image as an archive, by buildah, without a registry: [NAME=...:TAG] [STAGES=all]
	@node test/image/main.ts $(if $(NAME),--name $(NAME)) $(if $(STAGES),--stages $(STAGES))

.PHONY: manifests
manifests: deps ## write deploy/install from the chart
	@node test/chart/render.ts

.PHONY: release
release: deps ## image, chart, manifest, SBOM, licences and checksums into dist/release; no network
	@node test/image/release.ts

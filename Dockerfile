# docker build -t focalcal . && docker run --rm -v "$PWD:/data" focalcal audit scores.csv --score p --labels y --out audit
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip install --no-cache-dir --prefix=/installed /source

FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /usr/local
WORKDIR /data
ENTRYPOINT ["focalcal"]
